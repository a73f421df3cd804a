#include "operator/view/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "runtime/base/json.h"

namespace tfjob::view {
namespace {

constexpr size_t kLongestCharacter = 4;

// Returns the number of bytes of the character at the beginning of the text; 0 if it is not UTF-8.
size_t CharacterBytes(std::string_view text) {
  for (size_t bytes = 1; bytes <= std::min(kLongestCharacter, text.size()); ++bytes) {
    if (IsUtf8(text.substr(0, bytes))) return bytes;
  }
  return 0;
}

// Returns whether the character, of one or two bytes, is a control character. C1 is U+0080 to
// U+009F.
bool IsControl(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return character.size() == 2 && first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

std::string Escape(const char* format, char byte) {
  char text[8];
  snprintf(text, sizeof(text), format, static_cast<unsigned>(static_cast<uint8_t>(byte)));
  return text;
}

std::string Escaped(std::string_view text, std::string_view kept) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(bytes, 1));
    if (bytes == 0) {
      safe += Escape("\\x%02x", character[0]);
    } else if (IsControl(character) && kept.find(character) == std::string_view::npos) {
      safe += Escape("\\u%04x", character.back());
    } else {
      safe += character;
    }
    text.remove_prefix(character.size());
  }
  return safe;
}

}  // namespace

std::string PrintableLine(std::string_view line) {
  return Escaped(line, "\t");
}

std::string PrintableText(std::string_view text) {
  return Escaped(text, "\t\n");
}

std::string_view CutText(std::string_view text, size_t bytes) {
  if (bytes >= text.size()) return text;
  while (bytes > 0 && (static_cast<uint8_t>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace tfjob::view
