// Replaces the few values that JSON allows, but JsonDocument refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tfjob::data {

// Returns a copy of the text in which all values that JsonDocument refuses are replaced, or nullopt
// if there are none. If the text is JSON (RFC 8259), JsonDocument accepts the copy. In the copy,
//   - an integer that does not fit into 64 bits is written with an exponent, so that it is rounded;
//   - a number beyond the range of double is the largest double, with its sign;
//   - half of a surrogate pair, such as "\ud83d", is U+FFFD;
//   - a value that is nested more than 100 levels deep is null.
// No feature can have numbers that large or values nested that deeply. If the text is not JSON,
// neither is the copy.
std::optional<std::string> WithinParserLimits(std::string_view text);

// Returns "NaN" or "Infinity", whichever comes first outside of strings, or "" if neither occurs.
// Python writes them, although they are not JSON.
std::string_view NotInJson(std::string_view text);

}  // namespace tfjob::data
