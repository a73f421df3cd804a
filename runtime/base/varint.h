// Reads varints, the variable-length integers of Protocol Buffers and LevelDB: base 128, least
// significant group first.
#pragma once

#include <cstdint>
#include <string_view>

namespace tfjob {

// Removes a varint from the front of `text` and sets `value`. If `text` does not start with a
// varint of at most 64 bits, returns false and leaves `text` unchanged.
bool TakeVarint(std::string_view& text, uint64_t& value);

}  // namespace tfjob
