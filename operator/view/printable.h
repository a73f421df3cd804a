// Makes text from other sources safe to write to a terminal. Messages, events, logs and progress
// come from people and programs that the user may have no reason to trust. A control character in
// such text can rewrite the screen or hide lines (CVE-2021-25743 is the same weakness in kubectl).
// A verb must pass any text that it prints but did not compose itself through these functions.
#pragma once

#include <string>
#include <string_view>

namespace tfjob::view {

// Returns one line of UTF-8 text. Replaces the control characters (C0 except the tab, DEL and C1)
// with escapes such as "\u001b", and bytes that are not UTF-8 with escapes such as "\x9b". Changes
// no other text. The escapes of control characters are those of JSON and of YAML's quoted scalars,
// so such text keeps its meaning.
std::string PrintableLine(std::string_view line);
// Like PrintableLine, but keeps line feeds.
std::string PrintableText(std::string_view text);
// Returns the text truncated to at most `bytes` bytes, without splitting a character.
std::string_view CutText(std::string_view text, size_t bytes);

}  // namespace tfjob::view
