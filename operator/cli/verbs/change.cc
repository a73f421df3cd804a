#include "operator/cli/verbs/change.h"

#include <nlohmann/json.hpp>

#include "operator/api/conditions.h"
#include "operator/cli/verbs/access_error.h"

namespace tfjob::cli {

StatusOr<bool> ChangeSpec(Cluster& cluster, StoredJob job, const MakePatch& make) {
  constexpr int kTries = 5;
  const std::string name = job.job.metadata.name;
  const std::string uid = job.job.metadata.uid;
  const client::Key key{objects::Kind::kTFJob, job.job.metadata.name_space, name};
  Status status;
  for (int i = 0; i < kTries; ++i) {
    ASSIGN_OR_RETURN(const Json spec, make(job));
    if (spec.is_null()) return false;
    const Json patch = {
        {"metadata", {{"resourceVersion", job.job.metadata.resource_version}, {"uid", uid}}},
        {"spec", spec}};
    status = cluster.client().Patch(key, patch).status();
    if (status.ok()) return true;
    if (!absl::IsAborted(status)) break;
    ASSIGN_OR_RETURN(job, GetJob(cluster, name));
    if (job.job.metadata.uid != uid) break;
  }
  return Explain(status, cluster, client::ToString(key));
}

Status CheckNotEnded(const api::TFJob& job, std::string_view verb) {
  if (!api::IsFinished(job.status)) return OkStatus();
  return FailedPrecondition(job.key(), ": it has ",
                            api::IsFailed(job.status) ? "failed" : "succeeded",
                            ", and a job that has ended never runs again, so ", verb,
                            " would have no effect; delete it and create it again");
}

}  // namespace tfjob::cli
