// Computes the 64-bit hash FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/). Unlike std::hash,
// it returns the same value in every build and process. It detects only accidental differences:
// inputs with equal hashes are easy to construct.
#pragma once

#include <cstdint>
#include <string_view>

namespace tfjob {

class Fnv1a {
 public:
  // Adds bytes to the hash. The hash does not depend on how the bytes are divided among calls.
  constexpr Fnv1a& Add(std::string_view bytes) {
    for (const char byte : bytes) Mix(static_cast<unsigned char>(byte));
    return *this;
  }
  // Adds all 64 bits at once. Faster than adding the eight bytes, but the hash differs.
  constexpr Fnv1a& AddWord(uint64_t word) {
    Mix(word);
    return *this;
  }
  constexpr uint64_t hash() const { return hash_; }

 private:
  constexpr void Mix(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3; }

  uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace tfjob
