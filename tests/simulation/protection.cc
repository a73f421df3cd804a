#include "tests/simulation/protection.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/policy/facts/network_policy.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/check.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/labels.h"

namespace tfjob::simulation {
namespace {

using objects::ContainerStatus;
using objects::Kind;
using objects::PodPhase;

std::vector<std::shared_ptr<const objects::CustomResource>> Policies(Cluster& cluster) {
  std::vector<std::shared_ptr<const objects::CustomResource>> policies;
  const std::vector<client::Object> objects =
      *cluster.store().List(Kind::kNetworkPolicy, kNamespace, {});
  for (const client::Object& object : objects) {
    policies.push_back(std::get<std::shared_ptr<const objects::CustomResource>>(object));
  }
  return policies;
}

// Returns whether the pod's program runs, or will run, in a slot of the job.
bool TakesPart(const objects::Pod& pod, const api::TFJob& job) {
  const auto slot = policy::SlotOfName(kJob, pod.metadata.name);
  if (!IsOf(pod.metadata, job) || pod.metadata.terminating() || !slot) return false;
  if (slot->index >= api::Replicas(job, slot->type)) return false;
  if (pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed) return false;
  const ContainerStatus* container = pod.container(api::kContainerName);
  return container == nullptr || container->state != ContainerStatus::State::kTerminated;
}

std::string CheckKeys(const api::TFJob& job, Cluster& cluster) {
  const objects::Pod* first = nullptr;
  const auto pods = cluster.Pods();
  for (const auto& pod : pods) {
    if (!TakesPart(*pod, job)) continue;
    if (first == nullptr) first = pod.get();
    if (pod->key_id != first->key_id) {
      return StrCat(pod->metadata.name, " has the key \"", pod->key_id, "\", ",
                    first->metadata.name, " has \"", first->key_id, "\"");
    }
  }
  return "";
}

}  // namespace

KeySecret::KeySecret(uint64_t seed, Clock& clock) : random_(seed), clock_(clock) {
  keys::KeyRing ring;
  rings_[0] = std::make_shared<const keys::KeyRing>(ring);
  for (int i = 0; i < kKeys; ++i) {
    const auto at = static_cast<int64_t>(random_() % 900);
    added_at_[i] = clock.Monotonic() + std::chrono::seconds(i == 0 ? -3600 : at);
  }
  std::sort(added_at_.begin(), added_at_.end());
  for (int i = 0; i < kKeys; ++i) {
    const Status added =
        ring.Add(StrCat(i + 1), StrCat("the secret of the simulated key number ", i));
    ENFORCE(added.ok(), "the keys of a simulation are keys");
    rings_[i + 1] = std::make_shared<const keys::KeyRing>(ring);
  }
}

control::GetKeys KeySecret::Mount() {
  const Duration lag = std::chrono::seconds(static_cast<int64_t>(random_() % kMostLag));
  return [this, lag] {
    size_t shown = 0;
    while (shown < kKeys && added_at_[shown] + lag <= clock_.Monotonic()) ++shown;
    return rings_[shown];
  };
}

std::string Protection::Check(Cluster& cluster) {
  const std::optional<api::TFJob> job = cluster.Job();
  if (!job) return "";
  bool has_policy = false;
  for (const auto& policy : Policies(cluster)) {
    has_policy |= IsOf(policy->metadata, *job) && !policy->metadata.terminating();
  }
  for (const auto& pod : cluster.Pods()) {
    const bool is_new = IsOf(pod->metadata, *job) && seen_.insert(pod->metadata.uid).second;
    if (is_new && cluster.makes_policies() && !has_policy && !pod->metadata.terminating()) {
      return StrCat(pod->metadata.name, " began without a NetworkPolicy");
    }
  }
  return cluster.had_second_operator() ? "" : CheckKeys(*job, cluster);
}

std::string CheckPolicy(Cluster& cluster) {
  const std::optional<api::TFJob> job = cluster.Job();
  int count = 0;
  for (const auto& policy : Policies(cluster)) {
    if (!job || !IsOf(policy->metadata, *job)) return "a NetworkPolicy outlives its job";
    const Json rules = policy::NetworkPolicyRules(kJob, policy::WantedNetworkPolicy(*job));
    const std::string difference =
        policy::NetworkPolicyDifference((*policy->object)["spec"], rules);
    if (!api::IsFinished(job->status) && !difference.empty()) return difference + " is wrong";
    ++count;
  }
  if (!job) return "";
  bool has_pods = false;
  for (const auto& pod : cluster.Pods()) has_pods |= IsOf(pod->metadata, *job);
  const bool runs = !api::IsFinished(job->status) && !job->spec.run_policy.suspend;
  const int wanted = cluster.makes_policies() && (runs || has_pods) ? 1 : 0;
  return count == wanted ? "" : StrCat(count, " NetworkPolicies, not ", wanted);
}

}  // namespace tfjob::simulation
