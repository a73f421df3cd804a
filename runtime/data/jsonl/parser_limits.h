// Replaces the few values that JSON allows, but JsonDocument refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tfjob::data {

// Returns a copy of the text that JsonDocument accepts if the text is JSON (RFC 8259), or nullopt
// if there is nothing to replace. In the copy,
//   - an integer that does not fit into 64 bits is written with an exponent, so that it is rounded;
//   - a number beyond the range of double is the largest double, with its sign;
//   - half of a surrogate pair, such as "\ud83d", is U+FFFD;
//   - a value that is nested more than 100 levels deep is null.
// No feature can have such a number or such a level. If the text is not JSON, neither is the copy.
std::optional<std::string> WithinParserLimits(std::string_view text);

// Returns the first "NaN" or "Infinity" outside of strings, which Python writes although JSON does
// not have them, or "".
std::string_view NotInJson(std::string_view text);

}  // namespace tfjob::data
