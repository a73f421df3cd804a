#include "operator/control/pacing.h"

#include <algorithm>
#include <map>
#include <set>

#include "operator/objects/kind.h"
#include "operator/plan/plan.h"
#include "operator/render/desired_object.h"

namespace tfjob::control {
namespace {

// The size of the first batch: small, so that few creates fail in a namespace whose quota is
// exhausted, but large enough for all objects of a typical job.
constexpr size_t kFirstBatch = 8;
// If a job has more than kMostReads objects to read, one list reads them. The list needs only one
// call, but returns all of the job's objects of a kind.
constexpr size_t kMostReads = 3;
constexpr int kHandfulOfServices = 8;
// How long to wait before trying again to send events that could not be sent.
constexpr Duration kEventRetry = 5s;
// After an error, a reconcile that would be due sooner than this waits for the backoff instead.
constexpr Duration kErrorPatience = 1s;

// Returns the last slot for which this reconcile creates services. It is at most the (kMaxCreates /
// 2)-th slot with missing objects. If fewer than kHandfulOfServices services would be created,
// returns nullopt, and the reconcile creates no services: their watch events would cause another
// reconcile, which would immediately retry the pods that were just refused.
std::optional<api::ReplicaId> LastSlotForServices(
    const std::vector<render::DesiredObject>& creates) {
  std::set<api::ReplicaId> slots;
  for (const render::DesiredObject& object : creates) {
    if (!objects::IsOnePerJob(object.kind)) slots.insert(object.slot);
  }
  const auto last = std::next(slots.begin(), std::min(slots.size(), kMaxCreates / 2) - 1);
  if (std::next(last) == slots.end()) return *last;
  const auto services =
      std::count_if(creates.begin(), creates.end(), [&](const render::DesiredObject& object) {
        return object.kind == objects::Kind::kService && object.slot <= *last;
      });
  return services < kHandfulOfServices ? std::nullopt : std::optional(*last);
}

}  // namespace

bool ReadsByList(size_t count) {
  return count > kMostReads;
}

std::vector<render::DesiredObject> CreatesOfOneReconcile(
    const std::vector<render::DesiredObject>& creates) {
  if (creates.size() <= kMaxCreates) return creates;
  const std::optional<api::ReplicaId> last = LastSlotForServices(creates);
  std::set<api::ReplicaId> without_service;
  std::vector<render::DesiredObject> chosen;
  for (const render::DesiredObject& object : creates) {
    if (object.kind == objects::Kind::kService && (!last || object.slot > *last)) {
      without_service.insert(object.slot);
    } else if (object.kind == objects::Kind::kPod && without_service.contains(object.slot)) {
      continue;
    } else if (chosen.size() < kMaxCreates) {
      chosen.push_back(object);
    }
  }
  return chosen;
}

size_t BatchSize(int batch) {
  return kFirstBatch << batch;
}

bool ConcernsOneObject(const Status& error) {
  return absl::IsInvalidArgument(error);
}

std::set<api::ReplicaType> RefusedTypes(const std::vector<TriedCreate>& batch) {
  std::map<api::ReplicaType, bool> all_refused;
  for (const TriedCreate& tried : batch) {
    all_refused.emplace(tried.type, true).first->second &= ConcernsOneObject(tried.status);
  }
  std::set<api::ReplicaType> types;
  for (const auto& [type, refused] : all_refused) {
    if (refused) types.insert(type);
  }
  return types;
}

bool OnlyCountsDiffer(const api::TFJobStatus& before, api::TFJobStatus after) {
  after.ready = before.ready;
  for (auto& [type, replica] : after.replica_statuses) {
    const auto old = before.replica_statuses.find(type);
    if (old == before.replica_statuses.end()) return false;
    replica.active = old->second.active;
    replica.succeeded = old->second.succeeded;
    replica.failed = old->second.failed;
  }
  return after == before;
}

bool OnlyWritesCounts(const plan::Plan& plan, const api::TFJobStatus& before,
                      const api::TFJobStatus& after) {
  return plan.status != nullptr && plan.creates.empty() && plan.deletes.empty() &&
         plan.adopts.empty() && plan.events.empty() && !plan.change_pod_group &&
         !plan.change_network_policy && OnlyCountsDiffer(before, after);
}

CountsDelay DelayCounts(std::optional<Duration> behind_since, Duration now, Duration patience) {
  const Duration since = behind_since.value_or(now);
  const Duration left = since + patience - now;
  if (left <= Duration(0)) return {};
  return {since, left};
}

std::optional<Duration> Earlier(std::optional<Duration> a, std::optional<Duration> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

std::optional<Duration> RequeueAfter(const RequeueReasons& reasons) {
  std::optional<Duration> after = reasons.check_nodes_after;
  if (reasons.plan) after = Earlier(after, std::min(*reasons.plan, kWallClockPatience));
  if (reasons.has_more_work && !reasons.needs_retry) after = Duration(0);
  if (reasons.has_events) after = Earlier(after, kEventRetry);
  if (reasons.waits_for_watch) after = Earlier(after, kWatchPatience);
  return after;
}

std::optional<Duration> BesideBackoff(std::optional<Duration> again_after) {
  return again_after && *again_after >= kErrorPatience ? again_after : std::nullopt;
}

}  // namespace tfjob::control
