// Computes CRC-32C (Castagnoli; RFC 3720, appendix B.4) and TensorFlow's masked form of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tfjob::io {

// Returns the checksum of the concatenation of earlier bytes, whose checksum is `crc`, and `data`.
// The checksum of no bytes is 0.
uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> data);
inline uint32_t Crc32c(std::span<const std::byte> data) {
  return ExtendCrc32c(0, data);
}
uint32_t Crc32c(std::string_view data);
// Returns the checksum of two concatenated pieces of data, given the checksums of both and the size
// of the second piece. The time grows with the logarithm of that size.
uint32_t JoinCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes);

// A checksum stored next to its data is masked: rotated right by 15 bits, plus a constant.
constexpr uint32_t MaskCrc(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
constexpr uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}
}  // namespace tfjob::io
