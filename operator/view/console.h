// Defines the streams that a verb reads and writes, and the exit codes of the program.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::view {

struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // whether `out` is a terminal, whose lines can be overwritten
};

inline constexpr int kSucceeded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;  // bad usage, or an invalid manifest

// Returns the content of the file, or all of standard input for "-".
StatusOr<std::string> ReadInput(const std::string& path, Console& console);
// Returns the name of the input for messages: the path, or "standard input".
std::string InputName(const std::string& path);

// Writes the message to standard error, with the prefix "tfjob: " on every line and control
// characters escaped.
void PrintError(Console& console, const Status& status);
// Writes a warning or a note to standard error, with control characters escaped: "tfjob: warning:
// …".
void PrintWarning(Console& console, std::string_view text);
void PrintNote(Console& console, std::string_view text);

}  // namespace tfjob::view
