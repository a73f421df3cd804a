// What a verb reads from and writes to, and the codes that the program ends with.
#pragma once

#include <iosfwd>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::view {

struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // `out` is a terminal, on which lines may be written over
};

inline constexpr int kSucceeded = 0;
inline constexpr int kFailed = 1;
inline constexpr int kBadInput = 2;  // bad usage, or an invalid manifest

// The file's content, or all of standard input for "-".
StatusOr<std::string> ReadInput(const std::string& path, Console& console);
// How messages call it: the path, or "standard input".
std::string InputName(const std::string& path);

// Writes "tfjob: message" lines to standard error, one a line of the message.
void PrintError(Console& console, const Status& status);

}  // namespace tfjob::view
