#include "tests/timelines/world.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/objects/pod.h"

namespace tfjob::timelines {
namespace {

// The maximum number of rounds, far more than any timeline needs. A loop that takes more is assumed
// never to become idle.
constexpr int kMaxRounds = 2000;

store::StoreOptions StoreOptions(Clock& clock) {
  store::StoreOptions options;
  options.clock = &clock;
  options.deliver_by_hand = true;
  options.node_name = kNode;
  return options;
}

}  // namespace

World::World()
    : clock_(*ParseTime("2026-01-01T00:00:00Z")), store_(StoreOptions(clock_)), faulty_(store_) {}

StatusOr<std::string> World::FixedVersion::ApiVersion(objects::Kind) {
  if (version.empty()) return NotFound("the server serves no workloads");
  return version;
}

Status World::StartOperator() {
  manager_.reset();
  faulty_.Clear();
  control::ManagerOptions options;
  options.workers = 0;
  options.parallel_writes = 0;
  options.clock = &clock_;
  options.discovery = &discovery_;
  options.settings.address = render::ClusterDns("");
  options.settings.policy.gang = gang_;
  options.settings.keys = [this] { return keys_; };
  options.settings.policy.network_policies = network_policies_;
  options.settings.is_node_lost = [this](const std::string& node) {
    return lost_nodes_.contains(node);
  };
  ASSIGN_OR_RETURN(manager_, control::Manager::Start(faulty_, options));
  return OkStatus();
}

void World::KillOperatorAt(int call, bool carried_out) {
  client::Fault last;
  last.matches = [](const client::Call&) { return true; };
  last.nth = call;
  last.error = Unavailable("the operator is dead");
  last.executed = carried_out;
  client::Fault dead = last;
  dead.nth = call + 1;
  dead.times = 1 << 30;
  dead.executed = false;
  faulty_.Inject(last);
  faulty_.Inject(dead);
}

Status World::RunUntilIdle() {
  for (int round = 0; round < kMaxRounds; ++round) {
    const size_t delivered = store_.Deliver();
    const bool stepped = manager_->Step();
    if (delivered == 0 && !stepped) return OkStatus();
  }
  return FailedPrecondition("the loop finds no rest at ", FormatTime(clock_.Now()));
}

Status World::Advance(Duration by) {
  RETURN_IF_ERROR(RunUntilIdle());
  const Time until = clock_.Now() + by;
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::optional<Duration> timer = manager_->NextTimer();
    const Duration left = until - clock_.Now();
    if (!timer || *timer > left) {
      clock_.Advance(left);
      return RunUntilIdle();
    }
    clock_.Advance(*timer);
    RETURN_IF_ERROR(RunUntilIdle());
  }
  return FailedPrecondition("too many timers before ", FormatTime(until));
}

void World::SetNodeLost(const std::string& node, bool lost) {
  if (lost) {
    lost_nodes_.insert(node);
  } else {
    lost_nodes_.erase(node);
  }
}

Status World::Report(const std::string& pod, const std::function<void(objects::Pod&)>& change) {
  ASSIGN_OR_RETURN(const client::Object object, store_.Get(KeyOf(objects::Kind::kPod, pod)));
  objects::Pod report = *std::get<std::shared_ptr<const objects::Pod>>(object);
  change(report);
  Json status = objects::StatusToJson(report);
  status["metadata"] = {{"name", pod}, {"namespace", kNamespace}};
  return store_.UpdateStatus(objects::Kind::kPod, status).status();
}

Status World::Delete(objects::Kind kind, const std::string& name, std::optional<int64_t> grace) {
  client::DeleteOptions options;
  options.grace_period_seconds = grace;
  return store_.Delete(KeyOf(kind, name), options);
}

}  // namespace tfjob::timelines
