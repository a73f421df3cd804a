// Writes the reports of a run to a terminal or a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/view/console.h"

namespace tfjob::view {

// Prints permanent lines. On a terminal, also shows a few live lines below them, which it
// overwrites. Escapes control characters in all lines. Not thread-safe.
class Screen {
 public:
  explicit Screen(Console& console) : console_(console) {}
  ~Screen() { Live({}); }

  void Line(std::string_view text);
  // Replaces the live lines. Each line is truncated to width(). They are shown only on a terminal.
  // If not all of them fit, the last line shown contains the number of hidden lines.
  void Live(std::vector<std::string> lines);
  // Returns whether writing to the output has failed, for example because the reader is gone or the
  // disk is full.
  bool broken() const;
  // Returns the maximum length of a live line in bytes; 0 without a terminal.
  size_t width() const;
  // Returns the maximum number of live lines; 0 without a terminal.
  size_t height() const;

 private:
  void Erase();
  void Draw();

  Console& console_;
  std::vector<std::string> live_;
  size_t drawn_ = 0;
};

}  // namespace tfjob::view
