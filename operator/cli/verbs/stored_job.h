// Reads the TFJobs that a verb selects, as the server stores them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/cli/verbs/cluster.h"
#include "operator/client/client.h"

namespace tfjob::cli {

struct StoredJob {
  api::TFJob job;  // with defaults; only metadata and status if the spec cannot be read
  std::shared_ptr<const Json> object;  // the whole object, except the parts named in `missing`
  Status readable;                     // OK, or why the spec cannot be read
  Status missing;                      // the parts that `object` lacks: CustomResource::problem
};
// Reads a TFJob, which must be a CustomResource.
StoredJob ReadStoredJob(const client::Object& object);

// Returns "mnist" for "mnist", "tfjob/mnist", "tfj/mnist" and "tfjob.kubeflow.org/mnist".
std::string JobName(std::string_view text);
// Returns the job's name in the form that kubectl prints, such as "tfjob.kubeflow.org/mnist".
std::string ResourceName(const std::string& job_name);

// Reads a job. Errors are explained for users (access_error.h).
StatusOr<StoredJob> GetJob(Cluster& cluster, const std::string& name);

// The jobs that a verb applies to.
struct Selection {
  std::vector<std::string> names;  // empty for all
  bool all_namespaces = false;
  client::LabelSelector labels;

  // Returns the namespace of the jobs; "" for all namespaces.
  std::string name_space(const Cluster& cluster) const;
  bool Contains(const objects::ObjectMeta& job) const;
};
// Returns the selected jobs, in the order of `names` or, if that is empty, sorted by namespace and
// name. If a named job does not exist, prints an error, increments `missing` and still returns the
// jobs that exist.
StatusOr<std::vector<StoredJob>> ListJobs(const VerbContext& context, const Selection& selection,
                                          int& missing);

// Calls `act` for each of the named jobs. Prints errors and continues with the other jobs. Returns
// the exit code, which is kFailed if there was an error.
int ForEachJob(const VerbContext& context, const std::vector<std::string>& names,
               const std::function<Status(const StoredJob&)>& act);

// Returns the job's pods, sorted by replica type and index. Identifies them by their labels and
// their controller.
StatusOr<std::vector<std::shared_ptr<const objects::Pod>>> PodsOf(Cluster& cluster,
                                                                  const api::TFJob& job);
bool IsPodOf(const objects::Pod& pod, const api::TFJob& job);

}  // namespace tfjob::cli
