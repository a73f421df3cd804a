// Wraps nlohmann/json: parses JSON and reads typed values without exceptions. Errors contain the
// path of the value. Other files may use the Json type, but must not call its parse(), get<>()
// or at().
//
//   ASSIGN_OR_RETURN(Json document, ParseJson(text, "TF_CONFIG"));
//   JsonField root(document);
//   ASSIGN_OR_RETURN(int64_t index, root["task"]["index"].Int());
//   // The error: "task.index: expected an integer, got "x""
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob {

// A JSON value. Object members are sorted by key, so equal values are printed as the same text.
using Json = nlohmann::json;

// Maximum nesting of a document, in JSON and in YAML.
inline constexpr size_t kMaxJsonDepth = 200;

// Parses a document. Error messages contain `what`, which names the document, and the line and
// column. Nesting deeper than 200 levels, duplicate keys and invalid UTF-8 are errors.
StatusOr<Json> ParseJson(std::string_view text, std::string_view what);

// Returns whether the text is well-formed UTF-8.
bool IsUtf8(std::string_view text);

// Print a value, either compactly ("{"a":1}") or indented. Invalid UTF-8 in strings is printed
// as U+FFFD.
std::string PrintJson(const Json& value);
std::string PrintJsonIndented(const Json& value);

// Returns a short form of a value for error messages: a scalar as JSON (truncated to 60
// characters), "an object" or "a list".
std::string DescribeJson(const Json& value);

// A value inside a document, together with its path
// ("spec.tfReplicaSpecs.Worker.template.spec.containers[0].name"). Points into the document, which
// must outlive it. Cheap to copy. A field that is absent or explicitly null is not present(), as
// in Kubernetes.
class JsonField {
 public:
  explicit JsonField(const Json& document, std::string path = "");

  bool present() const { return value_ != nullptr; }
  bool IsObject() const;
  const Json* value() const { return value_; }
  const std::string& path() const { return path_; }

  // Returns a member or an element. The result is not present if this value is not an object (or
  // list) or does not contain the member (or element).
  JsonField operator[](std::string_view key) const;
  JsonField operator[](size_t index) const;

  // Return the value, or InvalidArgument with the path if the value is absent or has a different
  // type. Int rejects fractions and values that do not fit into int64; Int32 also rejects values
  // that do not fit into int32. Double also accepts integers. String rejects invalid UTF-8.
  StatusOr<std::string> String() const;
  StatusOr<int64_t> Int() const;
  StatusOr<int32_t> Int32() const;
  StatusOr<double> Double() const;
  StatusOr<bool> Bool() const;

  // Like the functions above, but return `otherwise` if the value is absent.
  StatusOr<std::string> StringOr(std::string_view otherwise) const;
  StatusOr<int64_t> IntOr(int64_t otherwise) const;
  StatusOr<double> DoubleOr(double otherwise) const;
  StatusOr<bool> BoolOr(bool otherwise) const;

  // Return all members (sorted by key) or all elements. Return an empty list if the value is
  // absent, and InvalidArgument if it has a different type.
  StatusOr<std::vector<std::pair<std::string, JsonField>>> Members() const;
  StatusOr<std::vector<JsonField>> Elements() const;

  // Returns the error "path: expected an integer, got "x"".
  Status Mismatch(std::string_view expected) const;

 private:
  JsonField(const Json* value, std::string path) : value_(value), path_(std::move(path)) {}

  const Json* value_;
  std::string path_;
};

}  // namespace tfjob
