#include "operator/api/names.h"

#include <charconv>

namespace tfjob::api {

std::string ReplicaName(const std::string& job_name, ReplicaType type, int32_t index) {
  return StrCat(ReplicaNamePrefix(job_name, type), index);
}

std::string ReplicaNamePrefix(const std::string& job_name, ReplicaType type) {
  return StrCat(job_name, "-", LowerName(type), "-");
}

std::string NetworkPolicyName(const std::string& job_name) {
  return job_name + "-tasks";
}

Labels JobSelector(const std::string& job_name) {
  return {{kOperatorNameLabel, kControllerName}, {kJobNameLabel, job_name}};
}

Labels TypeSelector(const std::string& job_name, ReplicaType type) {
  Labels labels = JobSelector(job_name);
  labels[kReplicaTypeLabel] = LowerName(type);
  return labels;
}

Labels ReplicaLabels(const std::string& job_name, ReplicaType type, int32_t index) {
  Labels labels = TypeSelector(job_name, type);
  labels[kReplicaIndexLabel] = StrCat(index);
  return labels;
}

std::string SelectorText(const std::string& job_name, ReplicaType type) {
  std::string text;
  for (const auto& [key, value] : TypeSelector(job_name, type)) {
    if (!text.empty()) text += ',';
    text += StrCat(key, "=", value);
  }
  return text;
}

std::optional<ReplicaId> ReplicaIdOf(const objects::LabelMap& labels) {
  const std::string_view type = labels.Find(kReplicaTypeLabel);
  const std::string_view digits = labels.Find(kReplicaIndexLabel);
  const std::optional<ReplicaType> parsed = ParseReplicaType(type);
  // Accept only the exact text that the operator writes: "ps" but not "PS", "7" but not "007".
  if (!parsed || LowerName(*parsed) != type) return std::nullopt;
  int32_t value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || value < 0 || StrCat(value) != digits) return std::nullopt;
  return ReplicaId{*parsed, value};
}

bool IsMasterRole(const TFJob& job, ReplicaType type, int32_t index) {
  if (type == ReplicaType::kChief || type == ReplicaType::kMaster) return true;
  const bool has_master = job.spec.replicas.contains(ReplicaType::kChief) ||
                          job.spec.replicas.contains(ReplicaType::kMaster);
  return !has_master && type == ReplicaType::kWorker && index == 0;
}

objects::OwnerReference OwnerReferenceOf(const TFJob& job) {
  objects::OwnerReference owner;
  owner.api_version = kApiVersion;
  owner.kind = kKind;
  owner.name = job.metadata.name;
  owner.uid = job.metadata.uid;
  owner.controller = true;
  owner.block_owner_deletion = true;
  return owner;
}

}  // namespace tfjob::api
