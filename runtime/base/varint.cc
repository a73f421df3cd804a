#include "runtime/base/varint.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace tfjob {
namespace {

constexpr uint64_t kLastBits = 0x8080808080808080;  // the bits that mark bytes other than the last

// Joins the seven lower bits of each byte of `bytes`, whose other bits must be 0: pairs of bytes,
// then pairs of these pairs, then both halves.
uint64_t JoinGroups(uint64_t bytes) {
  bytes = (bytes & 0x007F007F007F007F) | (bytes & 0x7F007F007F007F00) >> 1;
  bytes = (bytes & 0x00003FFF00003FFF) | (bytes & 0x3FFF00003FFF0000) >> 2;
  return (bytes & 0x000000000FFFFFFF) | (bytes & 0x0FFFFFFF00000000) >> 4;
}

bool TakeByteByByte(std::string_view& text, uint64_t& value) {
  uint64_t taken = 0;
  for (size_t i = 0; i < text.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i == 9 && byte > 1) return false;  // more than 64 bits
    taken |= static_cast<uint64_t>(byte & 0x7F) << (7 * i);
    if (byte < 0x80) {
      text.remove_prefix(i + 1);
      value = taken;
      return true;
    }
  }
  return false;
}

}  // namespace

bool TakeLongVarint(std::string_view& text, uint64_t& value) {
  uint64_t word = 0;
  if (text.size() < sizeof(word)) return TakeByteByByte(text, value);
  std::memcpy(&word, text.data(), sizeof(word));  // x86-64 is little-endian, as varints are
  const uint64_t ends = ~word & kLastBits;
  if (ends == 0) return TakeByteByByte(text, value);  // it is longer than 8 bytes
  const int last = std::countr_zero(ends);            // the highest bit of the last byte
  value = JoinGroups(word & (~uint64_t{0} >> (63 - last)) & ~kLastBits);
  text.remove_prefix(static_cast<size_t>(last) / 8 + 1);
  return true;
}

}  // namespace tfjob
