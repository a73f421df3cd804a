// Reads JSON that maps the tokens of a tokenizer to ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/json_view.h"
#include "runtime/base/status.h"

namespace tfjob::text {

// Describes a value for error messages: "an object", "a list" or, for a scalar, the JSON.
std::string Describe(const JsonView& value);

// Maps tokens to ids. Uses up to 20 bytes of memory per byte of any JSON, valid or not.
class TokenIds {
 public:
  using Map = absl::flat_hash_map<std::string_view, int32_t>;
  static constexpr int64_t kMostId = (1 << 28) - 1;

  // Returns InvalidArgument, with the token, if the JSON is not an object whose members are ids
  // from 0 to kMostId, or if a token occurs twice.
  static StatusOr<TokenIds> Parse(std::string_view json);

  std::optional<int32_t> Find(std::string_view token) const;
  const Map& tokens() const { return tokens_; }
  int64_t size() const { return size_; }   // every id is below it
  uint64_t hash() const { return hash_; }  // of all tokens and ids, in the order of the JSON

 private:
  TokenIds() = default;

  std::unique_ptr<JsonDocument> document_ = std::make_unique<JsonDocument>();
  Map tokens_;  // refers to the document
  int64_t size_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace tfjob::text
