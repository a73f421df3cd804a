#include "tests/simulation/cluster.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/manifest/tfjob_json.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "runtime/base/check.h"

namespace tfjob::simulation {
namespace {

using objects::Kind;

constexpr int kMaxRounds = 1000;
constexpr size_t kMostEvents = 8;  // maximum number of events between two reconciles
// If a watch has delivered nothing for this long, a leader gives up the lease.
constexpr Duration kStaleAfter = 2min;

store::StoreOptions StoreOptions(Clock& clock) {
  store::StoreOptions options;
  options.clock = &clock;
  options.deliver_by_hand = true;
  options.keep_changes = true;
  options.node_name = "node-1";
  return options;
}

}  // namespace

Cluster::Cluster(const Settings& settings)
    : settings_(settings),
      random_(settings.seed),
      clock_(*ParseTime("2026-01-01T00:00:00Z")),
      keys_(settings.seed + 1, clock_),
      store_(StoreOptions(clock_)),
      faulty_(store_) {
  StartOperator();
}

std::unique_ptr<control::Manager> Cluster::NewOperator(client::Client& client) {
  control::ManagerOptions options;
  options.workers = 0;
  options.parallel_writes = 0;
  options.clock = &operator_clock_;
  options.settings.count_patience = settings_.count_patience;
  if (settings_.has_keys) options.settings.keys = keys_.Mount();
  if (settings_.has_policies) {
    options.settings.policy.network_policies = policy::NetworkPolicies::kAll;
  }
  options.settings.address = render::ClusterDns("");
  auto manager = control::Manager::Start(client, options);
  ++starts_;
  ENFORCE(manager.ok(), "the control loop starts on a store that answers");
  return *std::move(manager);
}

void Cluster::StartOperator() {
  manager_.reset();
  faulty_.Clear();
  alive_ = true;
  manager_ = NewOperator(faulty_);
}

void Cluster::StartSecondOperator() {
  second_.reset();
  second_ = NewOperator(store_);
  had_second_operator_ = true;
}

void Cluster::CutWatches(bool all) {
  if (!stale_since_) stale_since_ = clock_.Monotonic();
  if (all) return store_.CutWatches();
  store_.CutWatch(random_());
}

void Cluster::MendWatches() {
  stale_since_.reset();
  store_.MendWatches();
}

void Cluster::LeaveIfStale() {
  if (!had_second_operator_ || !stale_since_) return;
  if (clock_.Monotonic() - *stale_since_ < kStaleAfter) return;
  stale_since_.reset();
  second_.reset();
  if (!alive_) return;
  manager_.reset();
  manager_ = NewOperator(faulty_);
}

size_t Cluster::DeliverSome() {
  const size_t most = 1 + random_() % kMostEvents;
  size_t delivered = 0;
  while (delivered < most && DeliverOne()) ++delivered;
  return delivered;
}

void Cluster::KillOperator() {
  client::Fault dead;
  dead.matches = [](const client::Call&) { return true; };
  dead.times = 1 << 30;
  dead.error = Unavailable("the operator is dead");
  faulty_.Inject(std::move(dead));
  alive_ = false;
}

bool Cluster::StepOne() {
  if (second_ != nullptr && (turn_of_second_ = !turn_of_second_) && second_->Step()) return true;
  return manager_->Step();
}

bool Cluster::RunUntilIdle() {
  for (int round = 0; round < kMaxRounds; ++round) {
    const size_t delivered = DeliverSome();
    const bool stepped = manager_->Step();
    const bool second_stepped = second_ != nullptr && second_->Step();
    if (delivered == 0 && !stepped && !second_stepped) return true;
  }
  return false;
}

std::optional<Duration> Cluster::NextTimer() {
  const std::optional<Duration> first = manager_->NextTimer();
  const std::optional<Duration> second = second_ != nullptr ? second_->NextTimer() : std::nullopt;
  if (!first || !second) return first ? first : second;
  return std::min(*first, *second);
}

bool Cluster::Advance(Duration by) {
  const Time until = clock_.Now() + by;
  for (int round = 0; round < kMaxRounds; ++round) {
    if (!RunUntilIdle()) return false;
    const std::optional<Duration> timer = NextTimer();
    const Duration left = until - clock_.Now();
    if (!timer || *timer > left) {
      clock_.Advance(left);
      LeaveIfStale();
      return RunUntilIdle();
    }
    clock_.Advance(*timer);
    LeaveIfStale();
  }
  return false;
}

std::optional<api::TFJob> Cluster::Job() {
  const StatusOr<client::Object> stored = store_.Get(KeyOf(Kind::kTFJob, kJob));
  if (!stored.ok()) return std::nullopt;
  const std::string& version = client::MetadataOf(*stored).resource_version;
  if (job_ && job_->metadata.resource_version == version) return job_;
  Json object = *client::As<objects::CustomResource>(*stored)->object;
  StatusOr<api::TFJob> job = manifest::ParseTFJob(object);
  if (!job.ok()) {
    object["spec"] = {{"tfReplicaSpecs", Json::object()}};
    job = manifest::ParseTFJob(object);
  }
  ENFORCE(job.ok(), "a job without a spec decodes");
  job_ = *std::move(job);
  return job_;
}

std::vector<std::shared_ptr<const objects::Pod>> Cluster::Pods() {
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  const std::vector<client::Object> objects = *store_.List(Kind::kPod, kNamespace, {});
  for (const client::Object& object : objects) {
    pods.push_back(std::get<std::shared_ptr<const objects::Pod>>(object));
  }
  return pods;
}

std::vector<std::shared_ptr<const objects::Service>> Cluster::Services() {
  std::vector<std::shared_ptr<const objects::Service>> services;
  const std::vector<client::Object> objects = *store_.List(Kind::kService, kNamespace, {});
  for (const client::Object& object : objects) {
    services.push_back(std::get<std::shared_ptr<const objects::Service>>(object));
  }
  return services;
}

std::vector<std::shared_ptr<const objects::CustomResource>> Cluster::PodGroups() {
  std::vector<std::shared_ptr<const objects::CustomResource>> groups;
  const std::vector<client::Object> objects =
      *store_.List(Kind::kCoschedulingPodGroup, kNamespace, {});
  for (const client::Object& object : objects) {
    groups.push_back(std::get<std::shared_ptr<const objects::CustomResource>>(object));
  }
  return groups;
}

int Cluster::Writes(bool events) {
  const std::vector<client::Call> calls = faulty_.Calls();
  return static_cast<int>(std::count_if(calls.begin(), calls.end(), [&](const client::Call& call) {
    if (call.key.kind == Kind::kEvent && !events) return false;
    return call.verb != client::Verb::kGet && call.verb != client::Verb::kList &&
           call.verb != client::Verb::kWatch;
  }));
}

}  // namespace tfjob::simulation
