// TFJobs as a server holds them, and how verbs come by them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

struct StoredJob {
  api::TFJob job;  // with defaults; of a spec that cannot be read: metadata and status only
  std::shared_ptr<const Json> object;  // the whole object
  Status readable;                     // why the spec cannot be read
};
StoredJob ReadStoredJob(const client::Object& object);

// "mnist" of "mnist", "tfjob/mnist", "tfj/mnist", "tfjob.kubeflow.org/mnist".
std::string JobName(std::string_view text);
// "tfjob.kubeflow.org/mnist": how verbs call a job on which they acted, as kubectl does.
std::string ResourceName(const std::string& job_name);

// Errors are explained (access_error.h).
StatusOr<StoredJob> GetJob(Cluster& cluster, const std::string& name);

// Which jobs a verb is about.
struct Selection {
  std::vector<std::string> names;  // none: all
  bool all_namespaces = false;
  client::LabelSelector labels;

  // "" for all.
  std::string name_space(const Cluster& cluster) const;
  bool Contains(const objects::ObjectMeta& job) const;
};
// Sorted by namespace and name. A named job that is not there is an error, printed and counted in
// `missing`; the others are given all the same.
StatusOr<std::vector<StoredJob>> ListJobs(const Surroundings& around, const Selection& selection,
                                          int& missing);

// Does one thing to each of the named jobs; errors are printed, and the other jobs go on. The exit
// code: kFailed when there was one.
int ForEachJob(const Surroundings& around, const std::vector<std::string>& names,
               const std::function<Status(const StoredJob&)>& act);

// The job's pods, by the labels that they bear and the controller that they name, in the order of
// their slots.
StatusOr<std::vector<std::shared_ptr<const objects::Pod>>> PodsOf(Cluster& cluster,
                                                                  const api::TFJob& job);
bool IsPodOf(const objects::Pod& pod, const api::TFJob& job);

}  // namespace tfjob::cli
