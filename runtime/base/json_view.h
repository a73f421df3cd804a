// The fast reader for JSON that arrives by the thousand: parses a text to a flat form (simdjson's)
// and reads from it without building a DOM. The same typed reading as JsonField (json.h), so that
// one decoder serves both; its errors do not tell the path: who wants one reads the text again with
// ParseJson.
//
//   JsonDocument document;  // keeps its buffers from one text to the next
//   ASSIGN_OR_RETURN(const JsonView root, document.Parse(text));
//   ASSIGN_OR_RETURN(std::string name, root["metadata"]["name"].String());
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob {

// A value inside a JsonDocument; cheap to copy, valid until the next Parse. An absent member, and an
// explicit null, are values that are not present.
class JsonView {
 public:
  JsonView() = default;

  bool present() const { return present_; }
  bool IsObject() const;
  bool IsArray() const;

  // Of members of the same name the first.
  JsonView operator[](std::string_view key) const;

  // InvalidArgument when absent or of another type. As JsonField's.
  StatusOr<std::string> String() const;
  StatusOr<int64_t> Int() const;
  StatusOr<int32_t> Int32() const;
  StatusOr<bool> Bool() const;
  // Points into the document; "" unless it is a string.
  std::string_view Text() const;

  // All members in their order, or elements; empty when absent; InvalidArgument for another type.
  StatusOr<std::vector<std::pair<std::string_view, JsonView>>> Members() const;
  StatusOr<std::vector<JsonView>> Elements() const;

  // "expected an integer".
  Status Mismatch(std::string_view expected) const;

 private:
  friend class JsonDocument;
  friend Json ToJson(const JsonView& view);

  bool present_ = false;
  alignas(8) unsigned char element_[16] = {};  // simdjson::dom::element, kept out of this header
};

// As a DOM.
Json ToJson(const JsonView& view);

// Not thread-safe.
class JsonDocument {
 public:
  // How many readable bytes, of any content, a text must have behind its end for ParsePadded.
  static constexpr size_t kPadding = 64;

  JsonDocument();
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  // InvalidArgument with the position's reason when it is not JSON, not UTF-8, or nested deeper than
  // 200 levels.
  StatusOr<JsonView> Parse(std::string_view text);
  StatusOr<JsonView> ParsePadded(std::string_view text);

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tfjob
