// Prints text of unknown origin in messages.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"

namespace tfjob::text {

// Returns the text in quotation marks, with escape sequences for all but printable ASCII and UTF-8,
// and cut after about 60 bytes.
inline std::string Quote(std::string_view text) {
  constexpr size_t kMost = 60;
  const std::string_view shown = text.substr(0, kMost);
  const std::string escaped =
      absl::Utf8SafeCHexEscape(absl::string_view(shown.data(), shown.size()));
  return "\"" + escaped + (text.size() > kMost ? "…\"" : "\"");
}

}  // namespace tfjob::text
