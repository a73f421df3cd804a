// The one door to nlohmann/json: parsing and typed reading without exceptions, errors with the path
// of the value. The value type travels; nobody else calls its parse(), get<>() or at().
//
//   ASSIGN_OR_RETURN(Json document, ParseJson(text, "TF_CONFIG"));
//   JsonField root(document);
//   ASSIGN_OR_RETURN(int64_t index, root["task"]["index"].Int());   // "task.index: expected an
//   integer, got "x""
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob {

// Object members are sorted by key, so that equal values print equally.
using Json = nlohmann::json;

// How deep a document may nest, as JSON or as YAML.
inline constexpr size_t kMaxJsonDepth = 200;

// `what` names the document in errors, which also say line and column. Nesting is limited to 200
// levels; duplicate keys are an error; invalid UTF-8 is an error.
StatusOr<Json> ParseJson(std::string_view text, std::string_view what);

// Whether the text is well-formed UTF-8.
bool IsUtf8(std::string_view text);

// Compact ("{"a":1}") and indented forms. Strings with invalid UTF-8 are printed with U+FFFD.
std::string PrintJson(const Json& value);
std::string PrintJsonIndented(const Json& value);

// A short form of a value for error messages: scalars as JSON (cut at 60 characters), "an object",
// "a list".
std::string DescribeJson(const Json& value);

// A value inside a document, together with its path
// ("spec.tfReplicaSpecs.Worker.template.spec.containers[0].name"). Points into the document, which
// must outlive it. Cheap to copy. An absent member is a field that is not present; so is an
// explicit null (as Kubernetes reads it).
class JsonField {
 public:
  explicit JsonField(const Json& document, std::string path = "");

  bool present() const { return value_ != nullptr; }
  bool IsObject() const;
  const Json* value() const { return value_; }
  const std::string& path() const { return path_; }

  // Member or element; a field that is not present when this is not an object (a list), or has
  // none.
  JsonField operator[](std::string_view key) const;
  JsonField operator[](size_t index) const;

  // InvalidArgument with the path when absent or of another type. Int refuses fractions and values
  // beyond int64, Int32 beyond int32; Double takes integers too; String refuses what is not UTF-8.
  StatusOr<std::string> String() const;
  StatusOr<int64_t> Int() const;
  StatusOr<int32_t> Int32() const;
  StatusOr<double> Double() const;
  StatusOr<bool> Bool() const;

  // The same, or `otherwise` when absent.
  StatusOr<std::string> StringOr(std::string_view otherwise) const;
  StatusOr<int64_t> IntOr(int64_t otherwise) const;
  StatusOr<double> DoubleOr(double otherwise) const;
  StatusOr<bool> BoolOr(bool otherwise) const;

  // All members (sorted by key) or elements; empty when absent; InvalidArgument for another type.
  StatusOr<std::vector<std::pair<std::string, JsonField>>> Members() const;
  StatusOr<std::vector<JsonField>> Elements() const;

  // "path: expected an integer, got "x"".
  Status Mismatch(std::string_view expected) const;

 private:
  JsonField(const Json* value, std::string path) : value_(value), path_(std::move(path)) {}

  const Json* value_;
  std::string path_;
};

}  // namespace tfjob
