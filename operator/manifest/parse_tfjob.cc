#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/schema.h"
#include "operator/manifest/reader.h"
#include "operator/manifest/tfjob_json.h"
#include "runtime/base/did_you_mean.h"

namespace tfjob::manifest {
namespace {

using WordList = std::vector<std::string>;

// The fields of metadata. The table of fields (operator/api/schema.h) does not describe them,
// because Kubernetes defines them.
const WordList kMetadataFields = {
    "name",       "generateName",      "namespace",         "uid",
    "labels",     "annotations",       "ownerReferences",   "resourceVersion",
    "finalizers", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "generation", "managedFields",     "selfLink",          "clusterName"};
const WordList kTypeWords = {"Chief", "Evaluator", "Master", "PS", "Worker"};
const WordList kObjectFields = api::SchemaMembers("");
const WordList kSpecFields = api::SchemaMembers("spec");
const WordList kReplicaFields = api::SchemaMembers("spec.tfReplicaSpecs");
const WordList kRunPolicyFields = api::SchemaMembers("spec.runPolicy");
const WordList kSchedulingFields = api::SchemaMembers("spec.runPolicy.schedulingPolicy");
const WordList kSuccessWords = api::SchemaField("spec.successPolicy").words;

// Returns the allowed values of a field as error messages list them: without "", although "" is
// accepted.
WordList WordsOf(std::string_view path) {
  WordList words = api::SchemaField(path).words;
  std::erase(words, "");
  return words;
}

const WordList kRestartWords = WordsOf("spec.tfReplicaSpecs.restartPolicy");
const WordList kCleanPodWords = WordsOf("spec.runPolicy.cleanPodPolicy");
const WordList kScopeWords = WordsOf("spec.runPolicy.restartScope");

bool Contains(const WordList& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void CheckConstant(const JsonField& field, std::string_view expected, Reader& reader) {
  if (field.present() && *field.value() == std::string(expected)) return;
  reader.Note(field.Mismatch(StrCat("\"", expected, "\"")));
}

objects::ObjectMeta ReadMetadata(const JsonField& field, Reader& reader) {
  if (!reader.IsObject(field)) return {};
  reader.WarnOfUnknown(field, kMetadataFields);
  StatusOr<objects::ObjectMeta> metadata = objects::ParseObjectMeta(field);
  if (metadata.ok()) return *std::move(metadata);
  // Parse each member separately to find all errors, because ParseObjectMeta stops at the first
  // one.
  Json readable = Json::object();
  for (const auto& [key, value] : field.value()->items()) {
    const Json alone = {{key, value}};
    const Status status = objects::ParseObjectMeta(JsonField(alone, field.path())).status();
    reader.Note(status);
    if (status.ok()) readable[key] = value;
  }
  return objects::ParseObjectMeta(JsonField(readable)).value_or(objects::ObjectMeta());
}

// Reads quantities, each an integer or a string, and keeps them as text.
void ReadQuantities(const JsonField& field, std::map<std::string, std::string>& quantities,
                    Reader& reader) {
  if (!reader.IsObject(field)) return;
  const auto members = field.Members();
  for (const auto& [key, quantity] : *members) {
    if (quantity.Int().ok()) {
      quantities[key] = PrintJson(*quantity.value());
    } else if (const StatusOr<std::string> text = quantity.String(); text.ok()) {
      quantities[key] = *text;
    } else {
      reader.Note(quantity.Mismatch("a quantity such as \"500m\" or 4"));
    }
  }
}

void ReadSchedulingPolicy(const JsonField& field, api::RunPolicy& policy, Reader& reader) {
  if (!reader.IsObject(field)) return;
  reader.WarnOfUnknown(field, kSchedulingFields);
  api::SchedulingPolicy scheduling;
  reader.Read(field["minAvailable"], scheduling.min_available);
  reader.Read(field["queue"], scheduling.queue);
  ReadQuantities(field["minResources"], scheduling.min_resources, reader);
  reader.Read(field["priorityClass"], scheduling.priority_class);
  reader.Read(field["scheduleTimeoutSeconds"], scheduling.schedule_timeout_seconds);
  policy.scheduling_policy = std::move(scheduling);
}

void ReadRunPolicy(const JsonField& field, api::RunPolicy& policy, Reader& reader) {
  if (!reader.IsObject(field)) return;
  reader.WarnOfUnknown(field, kRunPolicyFields);
  // An explicit "" means All, as in the Training Operator.
  reader.ReadWord<api::CleanPodPolicy>(field["cleanPodPolicy"], api::ParseCleanPodPolicy,
                                       kCleanPodWords, api::CleanPodPolicy::kAll,
                                       policy.clean_pod_policy);
  reader.Read(field["ttlSecondsAfterFinished"], policy.ttl_seconds_after_finished);
  reader.Read(field["activeDeadlineSeconds"], policy.active_deadline_seconds);
  reader.Read(field["backoffLimit"], policy.backoff_limit);
  ReadSchedulingPolicy(field["schedulingPolicy"], policy, reader);
  reader.Read(field["suspend"], policy.suspend);
  reader.Read(field["managedBy"], policy.managed_by);
  std::optional<api::RestartScope> scope;
  reader.ReadWord<api::RestartScope>(field["restartScope"], api::ParseRestartScope, kScopeWords,
                                     std::nullopt, scope);
  policy.restart_scope = scope.value_or(api::RestartScope::kReplica);
}

api::ReplicaSpec ReadReplicaSpec(const JsonField& field, Reader& reader) {
  api::ReplicaSpec spec;
  spec.pod_template = std::make_shared<const Json>(Json::object());
  if (!field.present()) reader.Note(field.Mismatch("an object"));
  if (!reader.IsObject(field)) return spec;
  reader.WarnOfUnknown(field, kReplicaFields);
  reader.Read(field["replicas"], spec.replicas);
  reader.ReadWord<api::RestartPolicy>(field["restartPolicy"], api::ParseRestartPolicy,
                                      kRestartWords, std::nullopt, spec.restart_policy);
  const JsonField pod_template = field["template"];
  if (reader.IsObject(pod_template)) {
    spec.pod_template = std::make_shared<const Json>(*pod_template.value());
  }
  return spec;
}

void ReportUnknownType(const JsonField& field, const std::string& key, Reader& reader) {
  const std::string nearest = NearestName(key, kTypeWords);
  reader.Error(StrCat(field.path(), ": unknown replica type",
                      nearest.empty() ? "" : StrCat("; did you mean \"", nearest, "\"?"),
                      " (the types are Chief, Evaluator, Master, PS, Worker)"));
}

void ReadReplicaSpecs(const JsonField& field, api::TFJobSpec& spec, Reader& reader) {
  if (!reader.IsObject(field)) return;
  std::map<api::ReplicaType, std::string> spelled;
  const auto members = field.Members();
  for (const auto& [key, member] : *members) {
    const std::optional<api::ReplicaType> type = api::ParseReplicaType(key);
    if (!type) {
      ReportUnknownType(member, key, reader);
      continue;
    }
    if (const auto [first, fresh] = spelled.emplace(*type, key); !fresh) {
      reader.Error(StrCat(field.path(), ": the keys \"", first->second, "\" and \"", key,
                          "\" differ only in case; keep one"));
    }
    spec.replicas[*type] = ReadReplicaSpec(member, reader);
  }
}

// Before v1.2 of the Training Operator, the fields of runPolicy were placed directly under spec.
// For such a field, the warning says where to move it.
void WarnOfUnknownInSpec(const JsonField& spec, Reader& reader) {
  Json others = Json::object();
  for (const auto& [key, value] : spec.value()->items()) {
    if (!Contains(kRunPolicyFields, key)) {
      others[key] = nullptr;
      continue;
    }
    reader.Warn(StrCat(spec.path(), ".", key),
                StrCat("this field has no effect here; move it to spec.runPolicy.", key));
  }
  reader.WarnOfUnknown(JsonField(others, spec.path()), kSpecFields);
}

void ReadSpec(const JsonField& field, api::TFJobSpec& spec, Reader& reader) {
  if (!field.present()) reader.Note(field.Mismatch("an object"));
  if (!reader.IsObject(field)) return;
  WarnOfUnknownInSpec(field, reader);
  ReadReplicaSpecs(field["tfReplicaSpecs"], spec, reader);
  ReadRunPolicy(field["runPolicy"], spec.run_policy, reader);
  std::optional<api::SuccessPolicy> success;
  reader.ReadWord<api::SuccessPolicy>(field["successPolicy"], api::ParseSuccessPolicy,
                                      kSuccessWords, api::SuccessPolicy::kDefault, success);
  spec.success_policy = success.value_or(api::SuccessPolicy::kDefault);
  reader.Read(field["enableDynamicWorker"], spec.enable_dynamic_worker);
}

}  // namespace

PartialTFJob ReadTFJob(const Json& object) {
  const JsonField root(object);
  if (!object.is_object()) return {{}, {}, root.Mismatch("a TFJob object")};
  Reader reader;
  api::TFJob job;
  reader.WarnOfUnknown(root, kObjectFields);
  CheckConstant(root["apiVersion"], api::kApiVersion, reader);
  CheckConstant(root["kind"], api::kKind, reader);
  job.metadata = ReadMetadata(root["metadata"], reader);
  ReadSpec(root["spec"], job.spec, reader);
  job.status = api::ReadStatus(root["status"]);
  return {std::move(job), reader.warnings(), reader.ToStatus()};
}

StatusOr<api::TFJob> ParseTFJob(const Json& object, std::vector<api::FieldIssue>* warnings) {
  PartialTFJob read = ReadTFJob(object);
  if (warnings != nullptr) *warnings = std::move(read.warnings);
  RETURN_IF_ERROR(read.status);
  return std::move(read.job);
}

}  // namespace tfjob::manifest
