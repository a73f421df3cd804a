#include "operator/kube/leader/lease_record.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace tfjob::kube {
namespace {

StatusOr<Time> ReadTime(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string text, field.StringOr(""));
  if (text.empty()) return Time();
  const StatusOr<Time> time = ParseTime(text);
  if (!time.ok()) return field.Mismatch("a time");
  return time;
}

}  // namespace

bool LeaseRecord::SameAs(const LeaseRecord& other) const {
  return holder == other.holder && duration == other.duration &&
         acquire_time == other.acquire_time && renew_time == other.renew_time &&
         transitions == other.transitions;
}

StatusOr<LeaseRecord> ParseLease(std::shared_ptr<const Json> object) {
  const JsonField root(*object);
  const JsonField spec = root["spec"];
  for (const JsonField& field : {root, root["metadata"], spec}) {
    if (field.present() && !field.IsObject()) return field.Mismatch("an object");
  }
  LeaseRecord record;
  ASSIGN_OR_RETURN(record.holder, spec["holderIdentity"].StringOr(""));
  ASSIGN_OR_RETURN(const int64_t seconds, spec["leaseDurationSeconds"].IntOr(0));
  // The maximum duration: one day, which is longer than any real lease, but short enough that
  // adding it to a time does not overflow.
  constexpr int64_t kMaxSeconds = 24 * 3600;
  record.duration = std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kMaxSeconds));
  ASSIGN_OR_RETURN(record.acquire_time, ReadTime(spec["acquireTime"]));
  ASSIGN_OR_RETURN(record.renew_time, ReadTime(spec["renewTime"]));
  ASSIGN_OR_RETURN(const int64_t transitions, spec["leaseTransitions"].IntOr(0));
  // Clamp the number, because an API server stores it in 32 bits.
  record.transitions = std::clamp<int64_t>(transitions, 0, std::numeric_limits<int32_t>::max());
  ASSIGN_OR_RETURN(record.resource_version, root["metadata"]["resourceVersion"].StringOr(""));
  record.object = std::move(object);
  return record;
}

Json ToJson(const LeaseRecord& record, const std::string& name_space, const std::string& name) {
  Json object = record.object == nullptr ? Json::object() : *record.object;
  object["apiVersion"] = "coordination.k8s.io/v1";
  object["kind"] = "Lease";
  Json& metadata = object["metadata"];
  metadata["namespace"] = name_space;
  metadata["name"] = name;
  if (!record.resource_version.empty()) metadata["resourceVersion"] = record.resource_version;
  Json& spec = object["spec"];
  spec["holderIdentity"] = record.holder;
  spec["leaseDurationSeconds"] =
      std::chrono::duration_cast<std::chrono::seconds>(record.duration).count();
  spec["acquireTime"] = FormatMicroTime(record.acquire_time);
  spec["renewTime"] = FormatMicroTime(record.renew_time);
  spec["leaseTransitions"] = record.transitions;
  return object;
}

}  // namespace tfjob::kube
