#include "tests/simulation/reports.h"

#include <map>
#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/api/reasons.h"

namespace tfjob::simulation {
namespace {

// The number of events about a job, by reason.
using Reports = std::map<std::string, int64_t>;

std::map<std::string, Reports> ReportsByJob(Cluster& cluster) {
  std::map<std::string, Reports> by_job;
  const std::vector<client::Object> events =
      *cluster.store().List(objects::Kind::kEvent, kNamespace, {});
  for (const client::Object& object : events) {
    const JsonField event(*client::As<objects::CustomResource>(object)->object);
    const std::string job = event["involvedObject"]["uid"].StringOr("").value_or("");
    const std::string reason = event["reason"].StringOr("").value_or("");
    ++by_job[job][reason];
  }
  return by_job;
}

}  // namespace

std::string CheckReports(Cluster& cluster, const Oracle& oracle, bool all) {
  std::map<std::string, Reports> by_job = ReportsByJob(cluster);
  for (auto& [job, reports] : by_job) {
    const Oracle::Causes causes = oracle.CausesOf(job);
    const int64_t ends = reports[api::kReasonSucceeded] + reports[api::kReasonFailed];
    if (ends > 1) return StrCat("there are ", ends, " events of the end of job ", job);
    const std::map<std::string, int64_t> most = {{api::kReasonExitedWithCode, causes.exits},
                                                 {api::kReasonSuspended, causes.suspensions},
                                                 {api::kReasonResumed, causes.suspensions}};
    for (const auto& [reason, count] : most) {
      if (reports[reason] <= count) continue;
      return StrCat("job ", job, " has ", reports[reason], " events ", reason, " for ", count,
                    " causes");
    }
  }
  const std::optional<api::TFJob> job = cluster.Job();
  if (!all || !job || !api::IsFinished(job->status)) return "";
  Reports& reports = by_job[job->metadata.uid];
  return reports[api::kReasonSucceeded] + reports[api::kReasonFailed] == 1
             ? ""
             : "the end of the job is not reported";
}

}  // namespace tfjob::simulation
