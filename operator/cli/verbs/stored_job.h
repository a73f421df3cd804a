// Reads TFJobs as a server stores them, selected by verbs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

struct StoredJob {
  api::TFJob job;  // with defaults; only metadata and status if the spec cannot be read
  std::shared_ptr<const Json> object;  // the whole object
  Status readable;                     // why the spec cannot be read
};
StoredJob ReadStoredJob(const client::Object& object);

// Returns "mnist" for "mnist", "tfjob/mnist", "tfj/mnist" and "tfjob.kubeflow.org/mnist".
std::string JobName(std::string_view text);
// Returns "tfjob.kubeflow.org/mnist", the name that verbs print for a job on which they acted, as
// kubectl does.
std::string ResourceName(const std::string& job_name);

// Reads a job. Errors are explained (access_error.h).
StatusOr<StoredJob> GetJob(Cluster& cluster, const std::string& name);

// The jobs to which a verb applies.
struct Selection {
  std::vector<std::string> names;  // empty: all
  bool all_namespaces = false;
  client::LabelSelector labels;

  // Returns the namespace of the jobs; "" for all.
  std::string name_space(const Cluster& cluster) const;
  bool Contains(const objects::ObjectMeta& job) const;
};
// Returns the selected jobs, sorted by namespace and name. A named job that does not exist is an
// error, which is printed and counted in `missing`; the other jobs are still returned.
StatusOr<std::vector<StoredJob>> ListJobs(const VerbContext& context, const Selection& selection,
                                          int& missing);

// Calls `act` for each of the named jobs. Prints errors and continues with the other jobs. Returns
// the exit code: kFailed if there was an error.
int ForEachJob(const VerbContext& context, const std::vector<std::string>& names,
               const std::function<Status(const StoredJob&)>& act);

// Returns the job's pods, identified by their labels and their controller, in the order of
// their slots.
StatusOr<std::vector<std::shared_ptr<const objects::Pod>>> PodsOf(Cluster& cluster,
                                                                  const api::TFJob& job);
bool IsPodOf(const objects::Pod& pod, const api::TFJob& job);

}  // namespace tfjob::cli
