// Implements the checksum in two ways. The first implementation uses SSE4.2's crc32 instruction on
// three interleaved streams, which hides the instruction's latency of three cycles. To combine the
// checksums of the streams, it multiplies them by x^n modulo the polynomial, using tables. The
// second implementation, for other machines, processes one byte at a time, using a table.
#include "runtime/io/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace tfjob::io {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected
constexpr size_t kStream = 1024;              // bytes of each of the three streams

constexpr std::array<uint32_t, 256> ByteTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kByteTable = ByteTable();

// Maps a CRC register to its value after a fixed number of zero bytes, with one table for each of
// its four bytes. The map is linear, so the image of a register is the exclusive-or of the images
// of its bytes.
using ShiftTable = std::array<std::array<uint32_t, 256>, 4>;

ShiftTable MakeShiftTable(size_t zero_bytes) {
  ShiftTable table{};
  for (int byte = 0; byte < 4; ++byte) {
    for (uint32_t value = 0; value < 256; ++value) {
      uint32_t crc = value << (8 * byte);
      for (size_t i = 0; i < zero_bytes; ++i) crc = (crc >> 8) ^ kByteTable[crc & 0xff];
      table[static_cast<size_t>(byte)][value] = crc;
    }
  }
  return table;
}

uint32_t Shift(const ShiftTable& table, uint32_t crc) {
  return table[0][crc & 0xff] ^ table[1][(crc >> 8) & 0xff] ^ table[2][(crc >> 16) & 0xff] ^
         table[3][crc >> 24];
}

uint64_t Load64(const uint8_t* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

__attribute__((target("sse4.2"))) uint32_t ExtendHardware(uint32_t crc, const uint8_t* data,
                                                          size_t size) {
  static const ShiftTable shift = MakeShiftTable(kStream);
  uint64_t state = crc;
  for (; size >= 3 * kStream; size -= 3 * kStream, data += 3 * kStream) {
    uint64_t first = state, second = 0, third = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      first = _mm_crc32_u64(first, Load64(data + i));
      second = _mm_crc32_u64(second, Load64(data + kStream + i));
      third = _mm_crc32_u64(third, Load64(data + 2 * kStream + i));
    }
    const uint32_t joined =
        Shift(shift, static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
    state = Shift(shift, joined) ^ static_cast<uint32_t>(third);
  }
  for (; size >= 8; size -= 8, data += 8) state = _mm_crc32_u64(state, Load64(data));
  for (; size > 0; --size) state = _mm_crc32_u8(static_cast<uint32_t>(state), *data++);
  return static_cast<uint32_t>(state);
}

// The polynomial 1. The highest bit of a reflected polynomial of degree below 32 is the coefficient
// of x^0.
constexpr uint32_t kOne = 1u << 31;
constexpr uint32_t kX = 1u << 30;

// Returns the product of two polynomials modulo kPolynomial.
uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t term = kOne; term != 0; term >>= 1) {
    if ((a & term) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) ? kPolynomial : 0);  // times x
  }
  return product;
}

uint32_t PowerOfX(uint64_t exponent) {
  uint32_t power = kOne;
  for (uint32_t square = kX; exponent != 0; exponent >>= 1, square = Multiply(square, square)) {
    if ((exponent & 1) != 0) power = Multiply(power, square);
  }
  return power;
}

uint32_t ExtendTable(uint32_t crc, const uint8_t* data, size_t size) {
  for (; size > 0; --size) crc = (crc >> 8) ^ kByteTable[(crc ^ *data++) & 0xff];
  return crc;
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, std::span<const std::byte> data) {
  static const bool hardware = __builtin_cpu_supports("sse4.2") != 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
  return ~(hardware ? ExtendHardware(~crc, bytes, data.size())
                    : ExtendTable(~crc, bytes, data.size()));
}

// The inversions before and after the division cancel out, as in zlib's crc32_combine.
uint32_t JoinCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return Multiply(first, PowerOfX(8 * second_bytes)) ^ second;
}

uint32_t Crc32c(std::string_view data) {
  return Crc32c(std::as_bytes(std::span(data.data(), data.size())));
}

}  // namespace tfjob::io
