#include "operator/cli/verbs/stored_job.h"

#include <algorithm>
#include <ostream>

#include "operator/api/defaults.h"
#include "operator/api/names.h"
#include "operator/api/status_json.h"
#include "operator/cli/verbs/access_error.h"
#include "operator/manifest/tfjob_json.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"

namespace tfjob::cli {

using objects::Kind;

StoredJob ReadStoredJob(const client::Object& object) {
  const auto& resource = *std::get<std::shared_ptr<const objects::CustomResource>>(object);
  StoredJob stored{{}, resource.object, resource.problem, resource.problem};
  if (stored.readable.ok()) {
    if (auto job = manifest::ParseTFJob(*resource.object); job.ok()) {
      stored.job = *std::move(job);
      api::SetDefaults(stored.job);
      return stored;
    } else {
      stored.readable = job.status();
    }
  }
  stored.job.metadata = resource.metadata;
  stored.job.status = api::ReadStatus(JsonField(*resource.object)["status"]);
  return stored;
}

std::string JobName(std::string_view text) {
  for (const std::string_view kind :
       {"tfjob/", "tfjobs/", "tfj/", "tfjob.kubeflow.org/", "tfjobs.kubeflow.org/"}) {
    if (text.starts_with(kind)) return std::string(text.substr(kind.size()));
  }
  return std::string(text);
}

std::string ResourceName(const std::string& job_name) {
  return StrCat("tfjob.kubeflow.org/", job_name);
}

StatusOr<StoredJob> GetJob(Cluster& cluster, const std::string& name) {
  const client::Key key{Kind::kTFJob, cluster.name_space(), JobName(name)};
  const auto object = cluster.client().Get(key);
  if (!object.ok()) return Explain(object.status(), cluster, client::ToString(key));
  return ReadStoredJob(*object);
}

std::string Selection::name_space(const Cluster& cluster) const {
  return all_namespaces ? "" : cluster.name_space();
}

bool Selection::Contains(const objects::ObjectMeta& job) const {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return JobName(name) == job.name;
         });
}

StatusOr<std::vector<StoredJob>> ListJobs(const VerbContext& context, const Selection& selection,
                                          int& missing) {
  Cluster& cluster = context.cluster;
  std::vector<StoredJob> jobs;
  for (const std::string& name : selection.names) {
    auto job = GetJob(cluster, name);
    if (!job.ok() && !absl::IsNotFound(job.status())) return job.status();
    if (job.ok()) {
      jobs.push_back(*std::move(job));
    } else {
      view::PrintError(context.console, job.status());
      ++missing;
    }
  }
  if (!selection.names.empty()) return jobs;
  const auto objects =
      cluster.client().List(Kind::kTFJob, selection.name_space(cluster), selection.labels);
  if (!objects.ok()) return Explain(objects.status(), cluster, "TFJobs");
  for (const client::Object& object : *objects) jobs.push_back(ReadStoredJob(object));
  return jobs;
}

int ForEachJob(const VerbContext& context, const std::vector<std::string>& names,
               const std::function<Status(const StoredJob&)>& act) {
  int code = view::kSucceeded;
  for (const std::string& name : names) {
    const auto job = GetJob(context.cluster, name);
    const Status status = job.ok() ? act(*job) : job.status();
    if (status.ok()) continue;
    view::PrintError(context.console, status);
    code = view::kFailed;
  }
  return code;
}

bool IsPodOf(const objects::Pod& pod, const api::TFJob& job) {
  const objects::OwnerReference* owner = pod.metadata.controller();
  return owner != nullptr && owner->uid == job.metadata.uid &&
         api::ReplicaIdOf(pod.metadata.labels).has_value();
}

StatusOr<std::vector<std::shared_ptr<const objects::Pod>>> PodsOf(Cluster& cluster,
                                                                  const api::TFJob& job) {
  const objects::ObjectMeta& metadata = job.metadata;
  const auto objects =
      cluster.client().List(Kind::kPod, metadata.name_space, {{api::kJobNameLabel, metadata.name}});
  if (!objects.ok()) return Explain(objects.status(), cluster, StrCat("the pods of ", job.key()));
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  for (const client::Object& object : *objects) {
    const auto& pod = std::get<std::shared_ptr<const objects::Pod>>(object);
    if (IsPodOf(*pod, job)) pods.push_back(pod);
  }
  std::stable_sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) {
    return *api::ReplicaIdOf(a->metadata.labels) < *api::ReplicaIdOf(b->metadata.labels);
  });
  return pods;
}

}  // namespace tfjob::cli
