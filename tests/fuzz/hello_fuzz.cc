// libFuzzer's entry point for arbitrary bytes (hello_property.h). The first byte of an input
// selects the side that receives the bytes: a listener (l) or a caller (c). The side has a key if
// the letter is upper-case. The second byte is the length of the pieces in which the following
// bytes arrive.
#include <cctype>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/hello_property.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool keyed = std::isupper(data[0]) != 0;
  const size_t piece = size_t{data[1]} + 1;
  if (std::tolower(data[0]) == 'l') tfjob::fuzz::CheckListenerProperties(rest, keyed, piece);
  if (std::tolower(data[0]) == 'c') tfjob::fuzz::CheckCallerProperties(rest, keyed, piece);
  return 0;
}
