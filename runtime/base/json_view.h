// Reads JSON quickly, for callers that parse one document after another. Parses JSON into
// simdjson's flat form and reads values from it without building a DOM. The accessors are the same
// as JsonField's (json.h), so one decoder can serve both. Errors do not contain the path; a caller
// that needs the path parses the document again with ParseJson.
//
//   JsonDocument document;  // keeps its buffers from one Parse to the next
//   ASSIGN_OR_RETURN(const JsonView root, document.Parse(text));
//   ASSIGN_OR_RETURN(std::string name, root["metadata"]["name"].String());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob {

// A value inside a JsonDocument. Cheap to copy; valid until the next Parse. A value that is absent
// or explicitly null is not present().
class JsonView {
 public:
  JsonView() = default;

  bool present() const { return present_; }
  bool IsObject() const;
  bool IsArray() const;
  bool IsString() const;

  // Returns a member. If several members have the same name, returns the first.
  JsonView operator[](std::string_view key) const;

  // Return the value. Like JsonField, return InvalidArgument if the value is absent or has a
  // different type.
  StatusOr<std::string> String() const;
  StatusOr<int64_t> Int() const;
  StatusOr<int32_t> Int32() const;
  // Also accepts integers, which are rounded if they cannot be represented exactly.
  StatusOr<double> Double() const;
  StatusOr<bool> Bool() const;
  // Return the value, or nullopt if the value is absent or has a different type. They do not
  // allocate memory.
  std::optional<int64_t> IfInt() const;
  std::optional<double> IfDouble() const;
  std::optional<bool> IfBool() const;
  // Returns a view into the document, or "" if the value is not a string.
  std::string_view Text() const;

  // Return all members, in document order, or all elements. Return an empty list if the value is
  // absent, and InvalidArgument if it has a different type.
  StatusOr<std::vector<std::pair<std::string_view, JsonView>>> Members() const;
  StatusOr<std::vector<JsonView>> Elements() const;

  // Call `visit` for all members or elements, in document order, and return its first error. Return
  // InvalidArgument if the value is absent or has a different type. Unlike the functions above,
  // they do not allocate memory.
  Status ForEachMember(
      absl::FunctionRef<Status(std::string_view name, JsonView member)> visit) const;
  Status ForEachElement(absl::FunctionRef<Status(JsonView element)> visit) const;

  // Returns the value's type, for messages: "an object", "a number", "null".
  std::string_view TypeName() const;
  // Returns the error "expected an integer".
  Status Mismatch(std::string_view expected) const;

 private:
  friend class JsonDocument;
  friend Json ToJson(const JsonView& view);

  bool present_ = false;
  alignas(8) unsigned char element_[16] = {};  // simdjson::dom::element, kept out of this header
};

// Converts the value to a DOM.
Json ToJson(const JsonView& view);

// Not thread-safe.
class JsonDocument {
 public:
  // Text passed to ParsePadded must be followed by this many readable bytes, with any content.
  static constexpr size_t kPadding = 64;

  JsonDocument();
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // Parse JSON and return its root. ParsePadded does not copy the text, which must be followed by
  // kPadding readable bytes. Return InvalidArgument, with simdjson's reason, if the text is not
  // JSON, is not UTF-8, or is nested deeper than 200 levels. Also return it for half of a surrogate
  // pair, an integer beyond 64 bits or a number beyond the range of double. Return
  // ResourceExhausted if memory runs out: parsing needs up to 15 times the size of the text.
  StatusOr<JsonView> Parse(std::string_view text);
  StatusOr<JsonView> ParsePadded(std::string_view text);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tfjob
