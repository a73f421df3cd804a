#include "operator/objects/last_line.h"

#include <cstdint>

#include "runtime/base/json.h"

namespace tfjob::objects {
namespace {

constexpr std::string_view kEllipsis = "…";

// Returns the size in bytes of the UTF-8 character at the beginning of `text`; 0 if there is none.
size_t CharacterSize(std::string_view text) {
  for (size_t size = 1; size <= 4 && size <= text.size(); ++size) {
    if (IsUtf8(text.substr(0, size))) return size;
  }
  return 0;
}

uint32_t CodePoint(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7fU >> character.size());
  for (const char next : character.substr(1)) {
    code = code << 6U | (static_cast<unsigned char>(next) & 0x3fU);
  }
  return code;
}

bool IsSpaceOrControl(uint32_t code) {
  return code <= 0x20 || (code >= 0x7f && code <= 0xa0) ||
         (code >= 0x200b && code <= 0x200f) ||  // zero-width spaces and direction marks
         (code >= 0x2028 && code <= 0x202e) ||  // line separators and direction overrides
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

// Appends the characters of a line as long as they fit into `most` bytes, and returns whether all
// of them fit.
bool AppendLine(std::string_view line, size_t most, std::string& out) {
  bool space = false;
  while (!line.empty()) {
    const size_t size = CharacterSize(line);
    const std::string_view character = size == 0 ? "?" : line.substr(0, size);
    line.remove_prefix(size == 0 ? 1 : size);
    if (IsSpaceOrControl(CodePoint(character))) {
      space = !out.empty();
      continue;
    }
    if (out.size() + (space ? 1 : 0) + character.size() > most) return false;
    if (space) out += ' ';
    space = false;
    out += character;
  }
  return true;
}

void CutTo(size_t most, std::string& text) {
  while (text.size() > most) {
    text.pop_back();
    while (!text.empty() && !IsUtf8(text)) text.pop_back();
  }
}

}  // namespace

std::string LastLine(std::string_view text, size_t most) {
  std::string line;
  while (line.empty() && !text.empty()) {
    const size_t end = text.find_last_of("\r\n");
    const std::string_view last = end == std::string_view::npos ? text : text.substr(end + 1);
    text = end == std::string_view::npos ? std::string_view() : text.substr(0, end);
    if (AppendLine(last, most, line)) continue;
    CutTo(most - kEllipsis.size(), line);
    line += kEllipsis;
  }
  return line;
}

}  // namespace tfjob::objects
