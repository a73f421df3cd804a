#include "runtime/base/varint.h"

#include <cstddef>

namespace tfjob {

bool TakeVarint(std::string_view& text, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < text.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i == 9 && byte > 1) return false;  // more than 64 bits
    value |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      text.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace tfjob
