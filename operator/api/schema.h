// Every field of the kubeflow.org/v1 TFJob as one table: name, type, bounds and what it means. The manifest reader knows
// fields and words from here, operator/crd makes the CustomResourceDefinition and the API reference of it. A test
// compares the table with the structs of tfjob.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tfjob::api {

enum class FieldType {
  kString,
  kInt32,
  kInt64,
  kBool,
  kTime,         // RFC 3339
  kQuantities,   // map of names to Kubernetes quantities
  kStrings,      // list
  kObject,       // `fields` are its members
  kObjects,      // list; `fields` are each element's
  kObjectMap,    // `fields` are each value's
  kPodTemplate,  // v1 PodTemplateSpec, open: what we do not know passes
  kMetadata,     // v1 ObjectMeta
};

struct Field {
  std::string name;
  FieldType type = FieldType::kString;
  std::string description;
  bool required = false;
  std::vector<std::string> words = {};  // the only values of a string; none: any
  std::optional<int64_t> minimum = std::nullopt;
  std::optional<int64_t> maximum = std::nullopt;
  // The default that the API server writes into stored objects, as JSON; empty: none. Other defaults are filled in
  // memory (defaults.h) and are part of the description.
  std::string stored_default = {};
  // What applies when the field is absent, for people.
  std::string when_absent = {};
  std::vector<Field> fields = {};
};

// The TFJob itself; its members are apiVersion, kind, metadata, spec and status.
const Field& TFJobSchema();

// The field at a path of member names ("spec.runPolicy.restartScope"; values of maps and elements of lists are skipped:
// "spec.tfReplicaSpecs.replicas"). A path that does not exist is a bug.
const Field& SchemaField(std::string_view path);
// The names of its members, as they stand in the table.
std::vector<std::string> SchemaMembers(std::string_view path);

}  // namespace tfjob::api
