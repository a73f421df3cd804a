#include "operator/crd/crd.h"

#include <nlohmann/json.hpp>

#include "operator/api/schema.h"
#include "operator/api/tfjob.h"
#include "operator/crd/rules.h"
#include "runtime/base/yaml.h"

namespace tfjob::crd {
namespace {

using api::Field;
using api::FieldType;

// Bounds that keep the estimated cost of the rules finite. kMaxReplicaTypes is larger than the
// number of replica types. Therefore, a job whose keys differ only in case is rejected by the rule
// about such keys, which has a clearer message.
constexpr int kMaxReplicaTypes = 10;
constexpr int kMaxContainers = 128;
constexpr int kMaxContainerName = 63;

// Matches a quantity: an optional sign, a decimal number, and optionally a binary suffix, a decimal
// suffix or an exponent.
constexpr char kQuantityPattern[] =
    R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$)";

void AddRules(const std::string& place, Json& schema) {
  Json rules = ValidationsAt(place);
  if (!rules.empty()) schema["x-kubernetes-validations"] = std::move(rules);
}

Json OpenObject() {
  return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
}

// Declares only the fields that the rules read. Accepts any other field.
Json PodTemplate() {
  Json container = OpenObject();
  container["properties"] = {{"name", {{"type", "string"}, {"maxLength", kMaxContainerName}}},
                             {"image", {{"type", "string"}}}};
  AddRules(kContainerPlace, container);
  Json spec = OpenObject();
  spec["properties"]["containers"] = {
      {"type", "array"}, {"maxItems", kMaxContainers}, {"items", container}};
  Json pod_template = OpenObject();
  pod_template["properties"] = {{"metadata", OpenObject()}, {"spec", spec}};
  return pod_template;
}

Json Quantities() {
  return {{"type", "object"},
          {"additionalProperties",
           {{"anyOf", {{{"type", "integer"}}, {{"type", "string"}}}},
            {"pattern", kQuantityPattern},
            {"x-kubernetes-int-or-string", true}}}};
}

Json SchemaOf(const Field& field, const std::string& place);

// Returns the schema of an object with the members of `field`; `place` is the path of the object.
Json ObjectOf(const Field& field, const std::string& place) {
  Json schema = {{"type", "object"}};
  for (const Field& member : field.fields) {
    const std::string member_place = place.empty() ? member.name : StrCat(place, ".", member.name);
    schema["properties"][member.name] = SchemaOf(member, member_place);
    // At the root, a rule (rules.h) requires the member instead.
    if (member.required && !place.empty()) schema["required"].push_back(member.name);
  }
  return schema;
}

Json ObjectMapOf(const Field& field, const std::string& place) {
  Json value = ObjectOf(field, place);
  AddRules(place + "[]", value);
  return {{"type", "object"}, {"additionalProperties", value}, {"maxProperties", kMaxReplicaTypes}};
}

Json TypeOf(const Field& field, const std::string& place) {
  switch (field.type) {
    case FieldType::kString:
      return {{"type", "string"}};
    case FieldType::kInt32:
      return {{"type", "integer"}, {"format", "int32"}};
    case FieldType::kInt64:
      return {{"type", "integer"}, {"format", "int64"}};
    case FieldType::kBool:
      return {{"type", "boolean"}};
    case FieldType::kTime:
      return {{"type", "string"}, {"format", "date-time"}};
    case FieldType::kQuantities:
      return Quantities();
    case FieldType::kStrings:
      return {{"type", "array"}, {"items", {{"type", "string"}}}};
    case FieldType::kObject:
      return ObjectOf(field, place);
    case FieldType::kObjects:
      return {{"type", "array"}, {"items", ObjectOf(field, place)}};
    case FieldType::kObjectMap:
      return ObjectMapOf(field, place);
    case FieldType::kPodTemplate:
      return PodTemplate();
    case FieldType::kMetadata:
      return {{"type", "object"}};
  }
  return {};
}

std::string DescriptionOf(const Field& field) {
  if (field.when_absent.empty()) return field.description;
  return StrCat(field.description, " Default: ", field.when_absent, ".");
}

Json SchemaOf(const Field& field, const std::string& place) {
  Json schema = TypeOf(field, place);
  AddRules(place, schema);
  // Add no description to metadata: the API server has its own, and rejects a description here.
  if (field.type != FieldType::kMetadata) schema["description"] = DescriptionOf(field);
  if (!field.words.empty()) schema["enum"] = field.words;
  if (field.minimum) schema["minimum"] = *field.minimum;
  if (field.maximum) schema["maximum"] = *field.maximum;
  if (!field.stored_default.empty()) {
    const StatusOr<Json> value = ParseJson(field.stored_default, field.name);
    schema["default"] = *value;
  }
  return schema;
}

Json Column(const char* name, const char* type, const char* path, const char* description,
            int priority) {
  Json column = {{"name", name}, {"type", type}, {"jsonPath", path}, {"description", description}};
  if (priority != 0) column["priority"] = priority;
  return column;
}

// The Training Operator's CRD has the columns State and Age. State must stay the first column.
Json PrinterColumns() {
  return {
      Column("State", "string", ".status.conditions[-1:].type", "The latest condition.", 0),
      Column("Ready", "string", ".status.ready", "Active and total replicas.", 0),
      Column("Restarts", "integer", ".status.restarts", "Restarts after failures.", 0),
      Column("Age", "date", ".metadata.creationTimestamp", "Time since the job was created.", 0),
      Column("Started", "date", ".status.startTime", "Time since the job started or was resumed.",
             1),
      Column("Ended", "date", ".status.completionTime", "Time since the job ended.", 1),
      Column("Message", "string", ".status.conditions[-1:].message",
             "The message of the latest condition.", 1),
  };
}

Json Version() {
  return {
      {"name", "v1"},
      {"served", true},
      {"storage", true},
      {"additionalPrinterColumns", PrinterColumns()},
      {"schema", {{"openAPIV3Schema", SchemaOf(api::TFJobSchema(), "")}}},
      {"subresources",
       {{"status", Json::object()},
        {"scale",
         {{"specReplicasPath", ".spec.tfReplicaSpecs.Worker.replicas"},
          {"statusReplicasPath", ".status.replicaStatuses.Worker.active"},
          {"labelSelectorPath", ".status.replicaStatuses.Worker.selector"}}}}},
  };
}

}  // namespace

Json CustomResourceDefinition() {
  return {
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata", {{"name", "tfjobs.kubeflow.org"}}},
      {"spec",
       {{"group", "kubeflow.org"},
        {"names",
         {{"kind", api::kKind},
          {"listKind", "TFJobList"},
          {"plural", "tfjobs"},
          {"singular", "tfjob"},
          {"shortNames", Json::array({"tfj"})}}},
        {"scope", "Namespaced"},
        {"versions", Json::array({Version()})}}},
  };
}

std::string CrdYaml() {
  return StrCat(
      "# Made from operator/api/schema.cc and operator/crd/rules.cc: bazel run "
      "//operator/crd:write "
      "-- $PWD\n",
      PrintYaml(CustomResourceDefinition()));
}

}  // namespace tfjob::crd
