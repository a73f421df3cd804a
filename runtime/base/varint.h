// Reads varints, the variable-length integers of Protocol Buffers and LevelDB: base 128, least
// significant group first.
#pragma once

#include <cstdint>
#include <string_view>

namespace tfjob {

// As TakeVarint, but not inlined.
bool TakeLongVarint(std::string_view& text, uint64_t& value);

// Removes a varint from the front of `text` and sets `value`. If `text` does not start with a
// varint of at most 64 bits, returns false and leaves `text` unchanged.
inline bool TakeVarint(std::string_view& text, uint64_t& value) {
  // Nearly all tags and most lengths have one byte.
  if (text.empty() || static_cast<unsigned char>(text.front()) >= 0x80)
    return TakeLongVarint(text, value);
  value = static_cast<unsigned char>(text.front());
  text.remove_prefix(1);
  return true;
}

}  // namespace tfjob
