// Reads varints, the numbers of Protocol Buffers and LevelDB: in base 128, the least significant
// group first.
#pragma once

#include <cstdint>
#include <string_view>

namespace tfjob {

// Removes a varint from the front of `text`. Returns false, and removes nothing, if there is no
// varint of at most 64 bits.
bool TakeVarint(std::string_view& text, uint64_t& value);

}  // namespace tfjob
