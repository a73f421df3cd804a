#include "operator/cli/explain.h"

#include <nlohmann/json.hpp>
#include <ostream>

#include "operator/api/defaults.h"
#include "operator/api/names.h"
#include "operator/manifest/manifest.h"
#include "operator/manifest/tfjob_json.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "operator/plan/plan.h"
#include "operator/policy/decide.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/history.h"
#include "operator/render/render.h"
#include "operator/view/printable.h"
#include "runtime/base/yaml.h"

namespace tfjob::cli {
namespace {

using Stage = ExplainOptions::Stage;

constexpr char kNoUid[] = "00000000-0000-0000-0000-000000000000";

// Contains the existing objects of all jobs.
struct Observed {
  std::vector<std::shared_ptr<const objects::Pod>> pods;
  std::vector<std::shared_ptr<const objects::Service>> services;
  std::vector<policy::PodGroup> pod_groups;
  std::vector<std::shared_ptr<const objects::CustomResource>> workloads;
  std::vector<std::shared_ptr<const objects::CustomResource>> network_policies;
};

// Determines the scheduler from the API group. Accepts any version.
StatusOr<policy::PodGroup> ReadPodGroup(const Json& object) {
  ASSIGN_OR_RETURN(objects::CustomResource group, objects::ParseCustomResource(object));
  if (const auto* traits = policy::FindGangSchedulerOfGroup(group.api_version)) {
    return policy::PodGroup{traits->scheduler,
                            std::make_shared<const objects::CustomResource>(std::move(group))};
  }
  return InvalidArgument("apiVersion: expected a PodGroup of scheduling.volcano.sh, ",
                         "scheduling.x-k8s.io or scheduling.k8s.io, got ", group.api_version);
}

StatusOr<Observed> ReadObserved(const ExplainOptions& options, view::Console& console) {
  Observed observed;
  if (options.observed.empty()) return observed;
  ASSIGN_OR_RETURN(const std::string text, view::ReadInput(options.observed, console));
  ASSIGN_OR_RETURN(const auto objects,
                   manifest::ParseManifest(text, view::InputName(options.observed)));
  for (const manifest::ManifestObject& object : objects) {
    if (object.kind == "Pod") {
      auto pod = objects::ParsePod(*object.object);
      if (!pod.ok()) return Annotate(pod.status(), object.where);
      observed.pods.push_back(std::make_shared<const objects::Pod>(*std::move(pod)));
    } else if (object.kind == "Service") {
      auto service = objects::ParseService(*object.object);
      if (!service.ok()) return Annotate(service.status(), object.where);
      observed.services.push_back(std::make_shared<const objects::Service>(*std::move(service)));
    } else if (object.kind == "PodGroup") {
      auto group = ReadPodGroup(*object.object);
      if (!group.ok()) return Annotate(group.status(), object.where);
      observed.pod_groups.push_back(*std::move(group));
    } else if (object.kind == "Workload" || object.kind == "NetworkPolicy") {
      auto other = objects::ParseCustomResource(*object.object);
      if (!other.ok()) return Annotate(other.status(), object.where);
      auto& list = object.kind == "Workload" ? observed.workloads : observed.network_policies;
      list.push_back(std::make_shared<const objects::CustomResource>(*std::move(other)));
    } else {
      return InvalidArgument(object.where,
                             ": kind: expected Pod, Service, PodGroup, Workload or NetworkPolicy");
    }
  }
  return observed;
}

bool IsController(const objects::OwnerReference& owner, const api::TFJob& job) {
  return owner.controller && owner.kind == api::kKind && owner.name == job.metadata.name;
}

template <typename Objects>
std::string ControllerUid(const Objects& objects, const api::TFJob& job) {
  for (const auto& object : objects) {
    if (object->metadata.name_space != job.metadata.name_space) continue;
    for (const objects::OwnerReference& owner : object->metadata.owner_references) {
      if (IsController(owner, job)) return owner.uid;
    }
  }
  return "";
}

void Complete(api::TFJob& job, const Observed& observed, api::CleanPodPolicy clean_up) {
  if (job.metadata.name_space.empty()) job.metadata.name_space = "default";
  std::string& uid = job.metadata.uid;
  if (uid.empty()) uid = ControllerUid(observed.pods, job);
  if (uid.empty()) uid = ControllerUid(observed.services, job);
  if (uid.empty()) uid = kNoUid;
  std::optional<api::CleanPodPolicy>& policy = job.spec.run_policy.clean_pod_policy;
  policy = policy.value_or(clean_up);
  api::SetDefaults(job);
}

bool HasLabels(const objects::ObjectMeta& metadata, const api::Labels& labels) {
  for (const auto& [key, value] : labels) {
    if (metadata.label(key) != value) return false;
  }
  return true;
}

policy::Snapshot SnapshotOf(const api::TFJob& job, const Observed& observed) {
  policy::Snapshot snapshot;
  snapshot.native_version = policy::ApiVersionOf(policy::NativeVersion::kV1Beta1);
  const auto owned = [&](const objects::ObjectMeta& metadata) {
    const objects::OwnerReference* controller = metadata.controller();
    return controller != nullptr && controller->uid == job.metadata.uid;
  };
  for (const auto& pod : observed.pods) {
    if (owned(pod->metadata)) snapshot.pods.push_back(pod);
  }
  for (const auto& service : observed.services) {
    const objects::ObjectMeta& metadata = service->metadata;
    if (owned(metadata)) {
      snapshot.services.push_back(service);
    } else if (metadata.controller() == nullptr && metadata.name_space == job.metadata.name_space &&
               HasLabels(metadata, api::JobSelector(job.metadata.name))) {
      snapshot.orphan_services.push_back(service);
    }
  }
  for (const policy::PodGroup& group : observed.pod_groups) {
    if (owned(group.object->metadata)) snapshot.pod_groups.push_back(group);
  }
  for (const auto& workload : observed.workloads) {
    if (owned(workload->metadata)) snapshot.workloads.push_back(workload);
  }
  const std::string policy_name = api::NetworkPolicyName(job.metadata.name);
  for (const auto& policy : observed.network_policies) {
    const bool has_name = policy->metadata.name == policy_name;
    if (has_name && owned(policy->metadata)) snapshot.network_policy = policy;
  }
  return snapshot;
}

// Returns a placeholder for a job's key. The key cannot be derived here, because only the ids of
// the operator's keys are known.
std::string ShownKey(const api::TFJob&, const std::string&) {
  return render::kShownKey;
}

// Returns what the requested stage prints for one job, as one or more JSON values.
StatusOr<std::vector<Json>> StageOf(const api::TFJob& job, const Observed& observed,
                                    const ExplainOptions& asked) {
  const Stage stage = asked.stage;
  if (stage == Stage::kDefaults) return std::vector<Json>{manifest::ToJson(job)};
  const Time now = asked.now.value_or(RealClock().Now());
  const policy::DecisionOptions& options = asked.options;
  policy::Snapshot snapshot = SnapshotOf(job, observed);
  snapshot.key_ids = asked.key_ids;
  policy::History history;
  snapshot.history = &history;
  policy::Remember(job, snapshot, options, history);
  const policy::Verdict verdict = policy::Decide(job, snapshot, now, options);
  if (stage == Stage::kVerdict) return std::vector<Json>{policy::Print(verdict)};
  ASSIGN_OR_RETURN(
      const render::Desired desired,
      render::Render(job, verdict, render::ClusterDns(asked.cluster_domain), ShownKey));
  if (stage == Stage::kObjects) return desired.ShowAll();
  return std::vector<Json>{plan::Print(plan::MakePlan(job, verdict, desired, snapshot))};
}

// Combines the results of all jobs into one document. A single result remains unchanged, except
// that objects always become a v1 List. Several results become a v1 List if they are Kubernetes
// objects, and otherwise an array.
Json Document(std::vector<Json> parts, Stage stage) {
  if (stage != Stage::kObjects && stage != Stage::kDefaults) {
    return parts.size() == 1 ? std::move(parts.front()) : Json(std::move(parts));
  }
  if (stage == Stage::kDefaults && parts.size() == 1) return std::move(parts.front());
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(parts)}};
}

StatusOr<Json> ExplainFile(const ExplainOptions& options, view::Console& console) {
  ASSIGN_OR_RETURN(const std::string text, view::ReadInput(options.file, console));
  manifest::ManifestReport report = manifest::CheckManifest(text, view::InputName(options.file));
  if (!report.ok()) {
    std::string lines;
    for (const std::string& error : report.errors) lines += error + "\n";
    return InvalidArgument(lines);
  }
  ASSIGN_OR_RETURN(const Observed observed, ReadObserved(options, console));
  std::vector<Json> parts;
  for (manifest::ManifestObject& object : report.objects) {
    if (!object.job) continue;
    Complete(*object.job, observed, options.default_clean_pod_policy);
    auto stage = StageOf(*object.job, observed, options);
    if (!stage.ok()) return Annotate(stage.status(), object.where);
    parts.insert(parts.end(), stage->begin(), stage->end());
  }
  if (parts.empty() && options.stage != Stage::kObjects) {
    return InvalidArgument(view::InputName(options.file), ": contains no TFJob");
  }
  return Document(std::move(parts), options.stage);
}

}  // namespace

int Explain(const ExplainOptions& options, view::Console& console) {
  const StatusOr<Json> document = ExplainFile(options, console);
  if (!document.ok()) {
    view::PrintError(console, document.status());
    return view::kBadInput;
  }
  const bool json = options.format == ExplainOptions::Format::kJson;
  console.out << view::PrintableText(json ? PrintJsonIndented(*document) + "\n"
                                          : PrintYaml(*document));
  return view::kSucceeded;
}

}  // namespace tfjob::cli
