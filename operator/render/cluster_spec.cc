#include "operator/render/cluster_spec.h"

#include <algorithm>

#include "operator/api/replicas.h"

namespace tfjob::render {
namespace {

using api::ReplicaType;
using cluster::Job;

constexpr char kEnvironment[] = "cloud";

Job OnlyTask(const Job& job, int32_t index) {
  return {.name = job.name, .addresses = {{0, job.addresses.at(index)}}};
}

Job SparseTask(const Job& job, int32_t index) {
  return {.name = job.name, .addresses = {{index, job.addresses.at(index)}}, .sparse = true};
}

// Workers may be added later, so their addresses are included even if there are none yet.
cluster::AddressPatterns PatternsOf(const api::TFJob& job, const AddressScheme& address) {
  cluster::AddressPatterns patterns;
  for (const ReplicaType type : api::kReplicaTypes) {
    if (type == ReplicaType::kPS) continue;  // TF_CONFIG lists all of them
    if (type != ReplicaType::kWorker && api::Replicas(job, type) == 0) continue;
    patterns[std::string(api::LowerName(type))] = address(job, type);
  }
  return patterns;
}

}  // namespace

ClusterSpec::ClusterSpec(const api::TFJob& job, const AddressScheme& address)
    : dynamic_(job.spec.enable_dynamic_worker) {
  for (const auto& [type, spec] : job.spec.replicas) {
    Job& tasks = jobs_[type];
    tasks.name = api::LowerName(type);
    const AddressOfIndex address_of = address(job, type);
    for (int32_t i = 0; i < api::Replicas(job, type); ++i) {
      tasks.addresses.emplace_hint(tasks.addresses.end(), i, address_of(i));
    }
  }
  if (dynamic_) {
    patterns_ = PatternsOf(job, address);
    return;
  }
  cluster::Cluster all;
  for (const auto& [type, tasks] : jobs_) all.jobs.push_back(tasks);
  static_cluster_ = cluster::PrintCluster(all);
}

cluster::Cluster ClusterSpec::DynamicClusterOf(const policy::Slot& slot) const {
  const Job& own = jobs_.at(slot.type);
  const auto servers = jobs_.find(ReplicaType::kPS);
  cluster::Cluster result;
  result.jobs.push_back({.name = "worker", .addresses = {}, .sparse = true});
  result.jobs.push_back(servers == jobs_.end() ? Job{.name = "ps"} : servers->second);
  switch (slot.type) {
    case ReplicaType::kWorker:
      result.jobs[0] = SparseTask(own, slot.index);
      result.jobs[1].null = result.jobs[1].addresses.empty();
      break;
    case ReplicaType::kPS:
      result.jobs[1] = OnlyTask(own, slot.index);
      break;
    case ReplicaType::kEvaluator:
      for (const ReplicaType chief : {ReplicaType::kChief, ReplicaType::kMaster}) {
        if (jobs_.contains(chief)) result.jobs.push_back(jobs_.at(chief));
      }
      [[fallthrough]];
    case ReplicaType::kChief:
    case ReplicaType::kMaster:
      result.jobs.push_back(OnlyTask(own, slot.index));
      break;
  }
  return result;
}

std::string ClusterSpec::ChiefType() const {
  if (!dynamic_) return "";
  for (const ReplicaType type : {ReplicaType::kChief, ReplicaType::kMaster, ReplicaType::kWorker}) {
    const auto found = jobs_.find(type);
    if (found != jobs_.end() && !found->second.addresses.empty()) return found->second.name;
  }
  return "";
}

std::string ClusterSpec::AddressPatterns() const {
  return dynamic_ ? cluster::Print(patterns_) : "";
}

std::string ClusterSpec::TfConfigOf(const policy::Slot& slot) const {
  const cluster::Task task{std::string(api::LowerName(slot.type)), slot.index};
  if (!dynamic_) return cluster::PrintWithTask(static_cluster_, task, kEnvironment);
  return cluster::Print({.cluster = DynamicClusterOf(slot), .task = task});
}

size_t ClusterSpec::LongestTfConfig() const {
  size_t longest = 0;
  for (const auto& [type, tasks] : jobs_) {
    if (tasks.addresses.empty()) continue;
    longest = std::max(longest, TfConfigOf({type, tasks.addresses.rbegin()->first}).size());
  }
  return longest;
}

}  // namespace tfjob::render
