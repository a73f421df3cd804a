#include "operator/control/admit.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/api/conditions.h"
#include "operator/api/defaults.h"
#include "operator/api/replicas.h"
#include "operator/api/validate.h"
#include "operator/manifest/tfjob_json.h"

namespace tfjob::control {
namespace {

// The fields that determine which controller manages the job and what is deleted after the job has
// ended.
constexpr const char* kKept[] = {"managedBy", "cleanPodPolicy", "ttlSecondsAfterFinished"};

// Returns the readable part of a job whose spec cannot be decoded. This is enough to leave the job
// to another controller, or to write a condition and clean up.
api::TFJob WithoutSpec(const objects::CustomResource& stored) {
  const JsonField policy = JsonField(*stored.object)["spec"]["runPolicy"];
  Json rest = *stored.object;
  rest["spec"] = {{"tfReplicaSpecs", Json::object()}, {"runPolicy", Json::object()}};
  for (const char* field : kKept) {
    if (!policy[field].present()) continue;
    Json with = rest;
    with["spec"]["runPolicy"][field] = *policy[field].value();
    if (manifest::ParseTFJob(with).ok()) rest = std::move(with);
  }
  api::TFJob job = manifest::ParseTFJob(rest).value_or(api::TFJob());
  job.metadata = stored.metadata;
  return job;
}

std::string ProblemsOf(const api::TFJob& job, const AdmissionRules& rules) {
  std::string problems;
  for (const api::FieldIssue& issue : api::Validate(job)) {
    if (!problems.empty()) problems += '\n';
    problems += api::ToString(issue);
  }
  const int64_t replicas = api::TotalReplicas(job);
  if (problems.empty() && replicas > rules.max_replicas) {
    return StrCat("spec.tfReplicaSpecs: the job has ", replicas,
                  " replicas, but this operator runs jobs with at most ", rules.max_replicas,
                  " (its flag --max-replicas-per-job)");
  }
  return problems;
}

}  // namespace

Admission Admit(const objects::CustomResource& stored, const AdmissionRules& rules) {
  StatusOr<api::TFJob> parsed =
      stored.problem.ok() ? manifest::ParseTFJob(*stored.object) : stored.problem;
  Admission admission;
  admission.verdict = parsed.status();
  admission.job = parsed.ok() ? *std::move(parsed) : WithoutSpec(stored);
  std::optional<api::CleanPodPolicy>& clean_up = admission.job.spec.run_policy.clean_pod_policy;
  clean_up = clean_up.value_or(rules.clean_pod_policy);
  if (!admission.verdict.ok()) return admission;
  api::SetDefaults(admission.job);
  // Skip the checks for a job that has ended: no more objects are created for it, and the cache
  // does not keep its templates.
  if (api::IsFinished(admission.job.status)) return admission;
  const std::string problems = ProblemsOf(admission.job, rules);
  if (!problems.empty()) admission.verdict = InvalidArgument(problems);
  return admission;
}

}  // namespace tfjob::control
