// Defines every field of the kubeflow.org/v1 TFJob in one table: name, type, bounds and meaning.
// The manifest reader reads the known fields and their allowed values from this table, and
// operator/crd generates the CustomResourceDefinition and the API reference from it. A test
// compares the table with the structs in tfjob.h.
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
  kObjects,      // list; `fields` are the members of each element
  kObjectMap,    // `fields` are the members of each value
  kPodTemplate,  // v1 PodTemplateSpec, open: unknown fields are passed on
  kMetadata,     // v1 ObjectMeta
};

struct Field {
  std::string name;
  FieldType type = FieldType::kString;
  std::string description;
  bool required = false;
  std::vector<std::string> words = {};  // the allowed values of a string; if empty, any
  std::optional<int64_t> minimum = std::nullopt;
  std::optional<int64_t> maximum = std::nullopt;
  // The default that the API server writes into stored objects, as JSON; empty if there is none.
  // For defaults that are set only in memory (defaults.h), see `when_absent`.
  std::string stored_default = {};
  // Describes, for users, the value that applies if the field is absent.
  std::string when_absent = {};
  std::vector<Field> fields = {};
};

// Returns the TFJob itself; its members are apiVersion, kind, metadata, spec and status.
const Field& TFJobSchema();

// Returns the field at a path of member names ("spec.runPolicy.restartScope"). Map keys and list
// indexes are omitted: "spec.tfReplicaSpecs.replicas". The path must exist.
const Field& SchemaField(std::string_view path);
// Returns the names of the field's members, in the order of the table.
std::vector<std::string> SchemaMembers(std::string_view path);

}  // namespace tfjob::api
