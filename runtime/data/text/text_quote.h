// Quotes text of unknown origin in messages.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "runtime/base/json.h"

namespace tfjob::text {

// Returns the text in quotation marks, with escape sequences for control characters and, if the
// text is not UTF-8, for all bytes except ASCII. Cuts the text after about 60 bytes, between
// characters.
inline std::string Quote(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string_view shown = text.substr(0, kMost);
  const auto continues = [&](size_t i) { return (text[i] & 0xC0) == 0x80; };
  for (int i = 0; i < 3 && shown.size() < text.size() && continues(shown.size()); ++i)
    shown.remove_suffix(1);
  // Also escape U+0080 to U+009F (C2 80 to C2 9F in UTF-8), because they control terminals.
  bool plain = IsUtf8(shown);
  for (size_t i = 0; plain && i + 1 < shown.size(); ++i)
    plain = shown[i] != '\xC2' || static_cast<unsigned char>(shown[i + 1]) >= 0xA0;
  const absl::string_view piece(shown.data(), shown.size());
  const std::string escaped = plain ? absl::Utf8SafeCHexEscape(piece) : absl::CHexEscape(piece);
  return "\"" + escaped + (shown.size() < text.size() ? "…\"" : "\"");
}

}  // namespace tfjob::text
