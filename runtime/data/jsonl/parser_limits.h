// Replaces the few values that JSON allows but JsonDocument rejects.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tfjob::data {

// Returns a copy of `text` in which all values that JsonDocument rejects are replaced, or nullopt
// if there are no such values. If the text is JSON (RFC 8259), JsonDocument accepts the copy;
// otherwise, the copy is not JSON either. In the copy,
//   - an integer that does not fit in 64 bits has an exponent, so that it is read as a double;
//   - a number beyond the range of double is replaced by the largest double of the same sign;
//   - half of a surrogate pair, such as "\ud83d", is replaced by U+FFFD;
//   - a value that is nested more than 100 levels deep is replaced by null.
// No feature can contain a number outside the range of double, or a value nested that deeply.
std::optional<std::string> WithinParserLimits(std::string_view text);

// Returns "NaN" or "Infinity", whichever occurs first outside of strings, or "" if neither occurs.
// Python's json module writes these words, although they are not valid JSON.
std::string_view NotInJson(std::string_view text);

}  // namespace tfjob::data
