#include "operator/cli/verbs/job_row.h"

#include "absl/strings/str_join.h"
#include "operator/api/replicas.h"
#include "operator/view/human.h"
#include "operator/view/job_view.h"

namespace tfjob::cli {
namespace {

int64_t Active(const api::TFJobStatus& status, api::ReplicaType type) {
  const auto found = status.replica_statuses.find(type);
  return found == status.replica_statuses.end() ? 0 : found->second.active;
}

// Returns the time from the start of the job until its completion or, if it is not complete, until
// `now`. Returns "" if the job has not started.
std::string Trained(const api::TFJobStatus& status, Time now) {
  if (!status.start_time) return "";
  return view::HumanDuration(status.completion_time.value_or(now) - *status.start_time);
}

// Returns the message of the newest condition that is True.
std::string ConditionMessage(const api::TFJobStatus& status) {
  std::string message;
  for (const api::Condition& condition : status.conditions) {
    if (condition.status) message = condition.message;
  }
  return message;
}

}  // namespace

std::string ReadyText(const StoredJob& job) {
  if (!job.readable.ok()) return "?";
  int64_t ready = 0;
  for (const auto& [type, spec] : job.job.spec.replicas) ready += Active(job.job.status, type);
  return StrCat(ready, "/", api::TotalReplicas(job.job));
}

std::string ReadyByType(const StoredJob& job) {
  const api::TFJob& tfjob = job.job;
  return absl::StrJoin(tfjob.spec.replicas, ", ", [&](std::string* out, const auto& entry) {
    const api::ReplicaType type = entry.first;
    *out +=
        StrCat(api::Name(type), " ", Active(tfjob.status, type), "/", api::Replicas(tfjob, type));
  });
}

int64_t Restarts(const api::TFJobStatus& status) {
  int64_t restarts = 0;
  for (const auto& [type, replicas] : status.replica_statuses) restarts += replicas.restarts;
  return restarts;
}

std::vector<std::string> Header(const JobColumns& columns) {
  std::vector<std::string> header;
  if (columns.name_space) header.push_back("NAMESPACE");
  header.insert(header.end(), {"NAME", "STATE", "READY", "RESTARTS", "AGE"});
  if (columns.wide) header.insert(header.end(), {"DURATION", "REPLICAS", "MESSAGE"});
  return header;
}

std::vector<std::string> Cells(const StoredJob& job, const JobColumns& columns, Time now) {
  const objects::ObjectMeta& metadata = job.job.metadata;
  const api::TFJobStatus& status = job.job.status;
  std::vector<std::string> cells;
  if (columns.name_space) cells.push_back(metadata.name_space);
  cells.insert(cells.end(),
               {metadata.name, view::StateOf(status), ReadyText(job), StrCat(Restarts(status)),
                view::HumanAge(metadata.creation_timestamp, now)});
  if (columns.wide)
    cells.insert(cells.end(), {Trained(status, now), ReadyByType(job), ConditionMessage(status)});
  return cells;
}

}  // namespace tfjob::cli
