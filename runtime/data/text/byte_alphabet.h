// Defines the characters that represent bytes in GPT-2's files: the printable characters of Latin-1
// represent themselves, and U+0100, U+0101, … represent the other bytes, in ascending order.
// https://github.com/openai/gpt-2/blob/master/src/encoder.py
#pragma once

#include <array>

namespace tfjob::text {

// Returns the character that represents each byte.
constexpr std::array<char32_t, 256> ByteAlphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < alphabet.size(); ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    alphabet[byte] = printable ? byte : next++;
  }
  return alphabet;
}

}  // namespace tfjob::text
