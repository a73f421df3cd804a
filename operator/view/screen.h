// The terminal, or the file, that a run reports to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/view/console.h"

namespace tfjob::view {

// Lines that stay, and on a terminal below them a few that are written over. Not thread-safe.
class Screen {
 public:
  explicit Screen(Console& console) : console_(console) {}
  ~Screen() { Live({}); }

  void Line(std::string_view text);
  // Replaces the lines that do not stay; without a terminal they are not shown at all.
  void Live(std::vector<std::string> lines);
  // Whether the output takes nothing any more: its reader is gone, or its disk is full.
  bool broken() const;
  // How many characters a live line may have; 0 without a terminal.
  size_t width() const;

 private:
  void Erase();
  void Draw();

  Console& console_;
  std::vector<std::string> live_;
  size_t drawn_ = 0;
};

}  // namespace tfjob::view
