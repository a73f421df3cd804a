// Builds the pods and services of a replica type. The parts that they share are prepared once, from
// the type's pod template.
#pragma once

#include <memory>

#include "operator/api/tfjob.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/slot.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::render {

// Contains the environment variables that a pod has in addition to those of its template. If the
// template sets terminationGracePeriodSeconds, the pod also has TFJOB_GRACE_PERIOD_SECONDS.
struct PodEnvironment {
  std::string key_id;     // the annotation tfjob.dev/key-id; omitted if ""
  std::string key;        // TFJOB_KEY, the first of these variables; omitted if ""
  std::string job_uid;    // TFJOB_UID
  int32_t attempt = 0;    // TFJOB_ATTEMPT, and the label tfjob.dev/attempt
  std::string chief;      // TFJOB_CHIEF; omitted if ""
  std::string addresses;  // TFJOB_ADDRESS_PATTERNS; omitted if ""
  std::string tf_config;  // TF_CONFIG, last; omitted if ""
};

class Template {
 public:
  // Prepares the template of a replica type. Returns InvalidArgument, with the path of the invalid
  // field in the TFJob, if the template is invalid. The result does not refer to `job`. Pods become
  // members of the job's pod group according to `gang`.
  static StatusOr<Template> Create(const api::TFJob& job, api::ReplicaType type,
                                   const policy::Gang& gang);

  Json Pod(const policy::Slot& slot, bool master_role, const PodEnvironment& environment) const;
  Json Service(const policy::Slot& slot) const;

 private:
  Template() = default;

  std::string job_name_;
  objects::ObjectMeta metadata_;  // for services, without the name and the operator's labels
  objects::ObjectMeta pod_metadata_;
  std::shared_ptr<const Json> pod_spec_;
  size_t container_ = 0;      // the index of the `tensorflow` container
  std::string grace_period_;  // terminationGracePeriodSeconds; "" if the template has none
  std::shared_ptr<const Json> ports_;
};

// Returns the object with kShownKey as the value of every TFJOB_KEY variable, including variables
// from the template.
Json HideKeys(Json object);

}  // namespace tfjob::render
