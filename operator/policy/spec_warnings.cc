#include "operator/policy/spec_warnings.h"

#include <nlohmann/json.hpp>

#include "operator/api/reasons.h"
#include "operator/api/validate.h"

namespace tfjob::policy {
namespace {

bool SetsRestartPolicy(const api::ReplicaSpec& spec) {
  if (spec.pod_template == nullptr) return false;
  const Json* value = JsonField(*spec.pod_template)["spec"]["restartPolicy"].value();
  return value != nullptr && *value != "";
}

// Returns whether the job's annotation requests a scheduler other than the enforced one.
bool IgnoresAnnotation(const api::TFJob& job, const Gang& gang) {
  const auto annotation = job.metadata.annotations.find(api::kGangSchedulerAnnotation);
  if (!gang.enforced || annotation == job.metadata.annotations.end()) return false;
  const GangTraits* wanted = FindGangScheduler(annotation->second);
  return wanted != nullptr && wanted->scheduler != gang.scheduler;
}

bool NamesAnotherScheduler(const api::ReplicaSpec& spec, const Gang& gang) {
  if (gang.scheduler == GangScheduler::kNone || spec.pod_template == nullptr) return false;
  const Json* value = JsonField(*spec.pod_template)["spec"]["schedulerName"].value();
  return value != nullptr && *value != "" && *value != gang.scheduler_name;
}

}  // namespace

std::vector<JobEvent> WarnAboutSpec(const api::TFJob& job, const Gang& gang) {
  std::vector<JobEvent> events;
  const auto warn = [&](const char* reason, std::string message, std::string cause) {
    events.push_back(
        {objects::EventType::kWarning, reason, std::move(message), std::move(cause), false});
  };
  for (const auto& [type, spec] : job.spec.replicas) {
    if (!SetsRestartPolicy(spec)) continue;
    warn(api::kReasonPodTemplateRestartPolicy, api::PodTemplateRestartPolicyMessage(type),
         StrCat("restart-policy/", api::Name(type)));
  }
  for (const auto& [type, spec] : job.spec.replicas) {
    if (!NamesAnotherScheduler(spec, gang)) continue;
    warn(api::kReasonPodTemplateSchedulerName,
         api::PodTemplateSchedulerNameMessage(type, gang.scheduler_name, gang.enforced),
         StrCat("scheduler-name/", api::Name(type)));
  }
  for (const api::FieldIssue& issue : api::Warnings(job)) {
    warn(api::kReasonSpecWarning, api::ToString(issue), StrCat("spec/", issue.path));
  }
  return events;
}

std::vector<JobEvent> WarnAboutAnnotations(const api::TFJob& job, const Gang& gang) {
  std::vector<JobEvent> events;
  const auto warn = [&](const std::string& message) {
    events.push_back({objects::EventType::kWarning, api::kReasonSpecWarning, message,
                      StrCat("annotation/", message), true});
  };
  for (const api::FieldIssue& issue : api::Warnings(job)) {
    if (issue.path.starts_with("metadata.annotations[")) warn(api::ToString(issue));
  }
  if (IgnoresAnnotation(job, gang)) {
    warn(StrCat("metadata.annotations[", api::kGangSchedulerAnnotation,
                "]: ignored, because the operator enforces ", Name(gang.scheduler),
                " for all jobs"));
  }
  return events;
}

}  // namespace tfjob::policy
