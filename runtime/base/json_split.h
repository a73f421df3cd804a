// Splits a JSON object into its members, or a JSON list into its elements, without parsing them.
// Use it for JSON that combines values from many owners, in which a malformed value must not make
// the other values unreadable.
//
//   ASSIGN_OR_RETURN(const auto members, SplitJsonObject(R"({"a":[1,2],"b":"x"})"));
//   // {"a", "[1,2]"}, {"b", "\"x\""}
//
// The functions run in linear time and do not recurse. They check brackets, quotes and separators,
// but not the spelling of numbers and literals, the encoding of strings, or separators inside the
// parts. Containers may be nested 10,100 deep, which is more than an API server accepts (10,000).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob {

inline constexpr size_t kMaxSplitDepth = 10100;

struct JsonMember {
  std::string_view key;    // as written, without the quotes
  std::string_view value;  // as written
};

// The results refer to `text`. Return InvalidArgument if the text is not a single object (or list).
StatusOr<std::vector<JsonMember>> SplitJsonObject(std::string_view text);
StatusOr<std::vector<std::string_view>> SplitJsonArray(std::string_view text);

// Returns the value of a member, or "" if there is none, or if `text` is not an object. If several
// members have the same key, returns the first.
std::string_view FindJsonMember(const std::vector<JsonMember>& members, std::string_view key);
std::string_view FindJsonMember(std::string_view text, std::string_view key);

struct JsonSize {
  size_t depth = 0;   // depth of nested containers; 0 for a scalar
  size_t values = 0;  // an upper bound on the number of values: objects, lists and scalars
};
// Measures `text`, which may be malformed.
JsonSize MeasureJson(std::string_view text);

}  // namespace tfjob
