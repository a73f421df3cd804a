#include "operator/local/run/workload.h"

#include <strings.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "operator/api/defaults.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/local/process/pod_spec.h"
#include "operator/local/run/dry_run.h"
#include "operator/local/run/field_warnings.h"
#include "operator/objects/metadata.h"
#include "operator/policy/rules/managed_by.h"
#include "runtime/base/yaml.h"

namespace tfjob::local {
namespace {

constexpr char kDefaultNamespace[] = "default";

// A metadata field that cannot work in a local run, because it refers to objects or controllers
// that do not exist there.
struct ForeignField {
  const char* name;
  const char* consequence;
};
constexpr ForeignField kOwnerReferences = {
    "ownerReferences", "the owners are not part of this run, so the object would be deleted"};
constexpr ForeignField kFinalizers = {
    "finalizers", "nothing on this machine would remove them, so the run could not end"};

constexpr char kClaimKind[] = "PersistentVolumeClaim";

// Returns what is wrong with the apiVersion or kind of a ConfigMap or claim, as "path: message": a
// version or a capitalisation that no API server accepts. Returns "" if they are right or the
// object is neither a ConfigMap nor a claim.
std::string WrongKind(const manifest::ManifestObject& object) {
  const std::string version = JsonField(*object.object)["apiVersion"].StringOr("").value_or("");
  for (const char* kind : {"ConfigMap", kClaimKind}) {
    if (object.kind == kind) {
      return version == "v1" ? "" : StrCat("apiVersion: expected \"v1\", got \"", version, "\"");
    }
    if (strcasecmp(object.kind.c_str(), kind) == 0) {
      return StrCat("kind: expected \"", kind, "\", got \"", object.kind, "\"");
    }
  }
  return "";
}

class Builder {
 public:
  explicit Builder(const process::RunnerOptions& options) : options_(options) {}

  void Add(manifest::ManifestObject object);
  StatusOr<Workload> Finish(manifest::ManifestReport& report, const std::string& what);

 private:
  void AddJob(manifest::ManifestObject& object);
  // Returns the object as it will be created: with a namespace, but without a status and without
  // the fields that a run cannot honour.
  std::shared_ptr<const Json> ForThisMachine(const manifest::ManifestObject& object);
  // Removes the field from an object or template. If the field was not empty, adds a warning.
  void LeaveOut(const ForeignField& field, const std::string& where, Json& object);
  void AddClaim(const manifest::ManifestObject& object);
  void CheckTemplates(const api::TFJob& job, const std::string& where);
  void CheckConfigMaps(const Workload::Job& job);
  void WarnOfFields(const Workload::Job& job);
  void AddError(const Status& status) {
    if (!status.ok()) errors_.emplace_back(Message(status));
  }
  void AddError(const std::string& where, std::string_view message) {
    errors_.push_back(StrCat(where, ": ", message));
  }

  process::RunnerOptions options_;
  Workload workload_;
  DryRun dry_run_;
  std::vector<std::string> errors_;
  std::set<std::string> claims_;  // of the manifest, by "namespace/name"
  FieldWarnings field_warnings_;
};

void Builder::Add(manifest::ManifestObject object) {
  if (const std::string wrong = WrongKind(object); !wrong.empty()) {
    return AddError(object.where, wrong);
  }
  if (object.job) return AddJob(object);
  if (object.kind == "ConfigMap") {
    workload_.config_maps.push_back(ForThisMachine(object));
    AddError(dry_run_.AddConfigMap(*workload_.config_maps.back(), object.where));
    return;
  }
  if (object.kind == kClaimKind) return AddClaim(object);
  workload_.warnings.push_back(StrCat(
      object.where,
      ": skipped: only TFJobs, ConfigMaps and PersistentVolumeClaims are used on this machine"));
}

std::shared_ptr<const Json> Builder::ForThisMachine(const manifest::ManifestObject& object) {
  auto copy = std::make_shared<Json>(*object.object);
  Json& metadata = (*copy)["metadata"];
  if (!metadata.contains("namespace") || metadata["namespace"] == "") {
    metadata["namespace"] = kDefaultNamespace;
  }
  copy->erase("status");
  LeaveOut(kOwnerReferences, object.where + ": ", *copy);
  LeaveOut(kFinalizers, object.where + ": ", *copy);
  if (!object.job) return copy;
  // Keep the templates' owners, which have no effect in a cluster either.
  for (auto& [type, replica] : (*copy)["spec"]["tfReplicaSpecs"].items()) {
    if (!replica.is_object() || !replica.contains("template")) continue;
    LeaveOut(kFinalizers, StrCat(object.where, ": spec.tfReplicaSpecs.", type, ".template."),
             replica["template"]);
  }
  return copy;
}

void Builder::LeaveOut(const ForeignField& field, const std::string& where, Json& object) {
  if (!object.is_object() || !object.contains("metadata")) return;
  Json& metadata = object["metadata"];
  if (!metadata.is_object() || !metadata.contains(field.name)) return;
  if (!metadata[field.name].empty()) {
    workload_.warnings.push_back(
        StrCat(where, "metadata.", field.name, ": left out: ", field.consequence));
  }
  metadata.erase(field.name);
}

void Builder::AddClaim(const manifest::ManifestObject& object) {
  const auto metadata = objects::ParseObjectMeta(JsonField(*object.object)["metadata"]);
  if (!metadata.ok()) return AddError(object.where, Message(metadata.status()));
  const std::string& name_space = metadata->name_space;
  const std::string key =
      StrCat(name_space.empty() ? kDefaultNamespace : name_space, "/", metadata->name);
  claims_.insert(key);
  const auto folder = metadata->annotations.find(api::kLocalPathAnnotation);
  if (folder == metadata->annotations.end()) return;
  if (!folder->second.starts_with('/')) {
    return AddError(object.where,
                    StrCat("metadata.annotations[", api::kLocalPathAnnotation,
                           "]: expected an absolute path, got \"", folder->second, "\""));
  }
  workload_.claim_folders[key] = folder->second;
}

void Builder::AddJob(manifest::ManifestObject& object) {
  const api::RunPolicy& policy = object.job->spec.run_policy;
  if (policy.suspend) {
    AddError(object.where,
             "spec.runPolicy.suspend: the job is suspended, and nothing would resume it here");
  }
  if (policy::IsManagedElsewhere(*object.job)) {
    AddError(object.where, StrCat("spec.runPolicy.managedBy: the job belongs to \"",
                                  *policy.managed_by, "\", so it would never start here"));
  }
  const auto& annotations = object.job->metadata.annotations;
  if (const auto asked = annotations.find(api::kNetworkPolicyAnnotation);
      asked != annotations.end() && asked->second == "true") {
    workload_.warnings.push_back(
        StrCat(object.where, ": metadata.annotations[", api::kNetworkPolicyAnnotation,
               "]: has no effect here: no NetworkPolicy protects the tasks' ports on 127.0.0.1"));
  }
  CheckTemplates(*object.job, object.where);
  Workload::Job job{ForThisMachine(object), *std::move(object.job), "", object.where};
  if (job.job.metadata.name_space.empty()) job.job.metadata.name_space = kDefaultNamespace;
  api::SetDefaults(job.job);
  AddError(dry_run_.AddJob(*job.object, job.job, job.where));
  workload_.jobs.push_back(std::move(job));
}

void Builder::CheckTemplates(const api::TFJob& job, const std::string& where) {
  for (const auto& [type, spec] : job.spec.replicas) {
    if (api::Replicas(job, type) == 0) continue;
    const std::string path = StrCat("spec.tfReplicaSpecs.", api::Name(type), ".template");
    const auto warnings = process::CheckTemplate(options_, *spec.pod_template, path);
    AddError(Annotate(warnings.status(), where));
  }
}

// Adds an error for each ConfigMap that is required but missing. The pod would wait for it forever,
// because no ConfigMap is created later.
void Builder::CheckConfigMaps(const Workload::Job& job) {
  std::set<std::string> known;
  for (const auto& map : workload_.config_maps) {
    const JsonField metadata = JsonField(*map)["metadata"];
    if (metadata["namespace"].StringOr("").value_or("") == job.job.metadata.name_space) {
      known.insert(metadata["name"].StringOr("").value_or(""));
    }
  }
  for (const auto& [type, spec] : job.job.spec.replicas) {
    const std::string path = StrCat("spec.tfReplicaSpecs.", api::Name(type), ".template");
    const auto pod = process::ParsePodSpec(*spec.pod_template, path);
    if (!pod.ok()) continue;  // already reported
    for (const process::ConfigMapReference& reference : process::RequiredConfigMaps(*pod)) {
      if (known.contains(reference.name)) continue;
      AddError(job.where,
               StrCat(reference.path, ": there is no ConfigMap \"", reference.name,
                      "\" in namespace \"", job.job.metadata.name_space, "\" of this file"));
    }
  }
}

// Adds the warnings about the job's templates, except those about claims that the manifest itself
// contains: a manifest with its own claims is also meant for a cluster, where these warnings do not
// apply.
void Builder::WarnOfFields(const Workload::Job& job) {
  for (const auto& [type, spec] : job.job.spec.replicas) {
    if (api::Replicas(job.job, type) == 0) continue;
    const std::string path = StrCat("spec.tfReplicaSpecs.", api::Name(type), ".template");
    const auto pod = process::ParsePodSpec(*spec.pod_template, path);
    if (!pod.ok()) continue;  // already reported
    std::set<std::string> known;
    for (const process::Volume& volume : pod->volumes) {
      const std::string claim = StrCat(job.job.metadata.name_space, "/", volume.source);
      if (volume.kind == process::Volume::Kind::kClaim && claims_.contains(claim)) {
        known.insert(volume.path + ".persistentVolumeClaim");
      }
    }
    for (const std::string& warning : pod->warnings) {
      if (!known.contains(PathOf(warning))) field_warnings_.Add(job.where, warning);
    }
  }
}

StatusOr<Workload> Builder::Finish(manifest::ManifestReport& report, const std::string& what) {
  for (const Workload::Job& job : workload_.jobs) {
    CheckConfigMaps(job);
    WarnOfFields(job);
  }
  errors_.insert(errors_.begin(), report.errors.begin(), report.errors.end());
  if (errors_.empty() && workload_.jobs.empty())
    errors_.push_back(StrCat(what, ": contains no TFJob"));
  if (!errors_.empty()) {
    return InvalidArgument(absl::StrJoin(errors_, "\n"));
  }
  std::vector<std::string> warnings = std::move(report.warnings);
  std::vector<std::string> field_lines = field_warnings_.Lines();
  for (std::vector<std::string>* more : {&field_lines, &workload_.warnings}) {
    warnings.insert(warnings.end(), more->begin(), more->end());
  }
  workload_.warnings = std::move(warnings);
  options_.claim_folders = workload_.claim_folders;
  for (Workload::Job& job : workload_.jobs)
    job.model_dir = FindModelDir(job.job, workload_.config_maps, options_);
  return std::move(workload_);
}

// Returns the `model_dir` from the first file in the ConfigMap that, like a training file, has this
// key; "" if no file has the key.
std::string ModelDirIn(const Json& config_map) {
  const auto values = JsonField(config_map)["data"].Members();
  if (!values.ok()) return "";
  for (const auto& [key, value] : *values) {
    const auto text = value.String();
    const auto documents = text.ok() ? ParseYaml(*text, key) : text.status();
    if (!documents.ok() || documents->empty()) continue;
    const auto model_dir = JsonField(documents->front())["model_dir"].StringOr("");
    if (model_dir.ok() && !model_dir->empty()) return *model_dir;
  }
  return "";
}

std::string ModelDirOf(const process::PodSpec& pod, const std::string& name_space,
                       const std::vector<std::shared_ptr<const Json>>& config_maps) {
  for (const process::Volume& volume : pod.volumes) {
    if (volume.kind != process::Volume::Kind::kConfigMap) continue;
    for (const auto& map : config_maps) {
      const JsonField metadata = JsonField(*map)["metadata"];
      if (metadata["name"].StringOr("").value_or("") != volume.source) continue;
      if (metadata["namespace"].StringOr("").value_or("") != name_space) continue;
      if (std::string found = ModelDirIn(*map); !found.empty()) return found;
    }
  }
  return "";
}

// Returns the innermost mount that contains `path` in the `tensorflow` container; nullptr if there
// is no such mount.
const process::VolumeMount* MountOf(const process::PodSpec& pod, const std::string& path) {
  const process::VolumeMount* innermost = nullptr;
  for (const process::Container& container : pod.containers) {
    if (container.name != api::kContainerName) continue;
    for (const process::VolumeMount& mount : container.mounts) {
      if (path != mount.mount_path && !path.starts_with(mount.mount_path + "/")) continue;
      if (innermost == nullptr || mount.mount_path.size() > innermost->mount_path.size()) {
        innermost = &mount;
      }
    }
  }
  return innermost;
}

// Maps a path in the container to a path on this machine. Returns "" if neither a hostPath volume
// nor a claim contains the path, because files elsewhere do not outlive the run.
std::string OnThisMachine(const process::PodSpec& pod, const std::string& name_space,
                          const std::string& path, const process::RunnerOptions& options) {
  const process::VolumeMount* mount = MountOf(pod, path);
  if (mount == nullptr) return "";
  const process::Volume& volume = *pod.volume(mount->volume);
  std::string folder;
  if (volume.kind == process::Volume::Kind::kHostPath) {
    folder = volume.source;
  } else if (volume.kind == process::Volume::Kind::kClaim) {
    folder = process::FindClaim(options, name_space, volume.source).path;
  } else {
    return "";
  }
  const std::string sub = mount->sub_path.empty() ? "" : "/" + mount->sub_path;
  return StrCat(folder, sub, path.substr(mount->mount_path.size()));
}

}  // namespace

StatusOr<Workload> MakeWorkload(manifest::ManifestReport report,
                                const process::RunnerOptions& options, const std::string& what) {
  Builder builder(options);
  if (report.ok()) {
    for (manifest::ManifestObject& object : report.objects) builder.Add(std::move(object));
  }
  return builder.Finish(report, what);
}

std::string FindModelDir(const api::TFJob& job,
                         const std::vector<std::shared_ptr<const Json>>& config_maps,
                         const process::RunnerOptions& options) {
  constexpr std::array kSavers = {api::ReplicaType::kChief, api::ReplicaType::kMaster,
                                  api::ReplicaType::kWorker};
  for (const api::ReplicaType type : kSavers) {
    const auto spec = job.spec.replicas.find(type);
    if (spec == job.spec.replicas.end() || api::Replicas(job, type) == 0) continue;
    const auto pod = process::ParsePodSpec(*spec->second.pod_template);
    if (!pod.ok()) return "";
    const std::string& name_space = job.metadata.name_space;
    return OnThisMachine(*pod, name_space, ModelDirOf(*pod, name_space, config_maps), options);
  }
  return "";
}

}  // namespace tfjob::local
