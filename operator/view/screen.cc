#include "operator/view/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <ostream>
#include <utility>

#include "operator/view/printable.h"

namespace tfjob::view {

void Screen::Line(std::string_view text) {
  Erase();
  console_.out << PrintableLine(text) << "\n";
  Draw();
}

void Screen::Live(std::vector<std::string> lines) {
  if (!console_.terminal) return;
  const size_t longest = width();
  for (std::string& line : lines) line = CutText(PrintableLine(line), longest);
  if (lines == live_) return;
  live_ = std::move(lines);
  Erase();
  Draw();
}

bool Screen::broken() const {
  return !console_.out.good();
}

size_t Screen::width() const {
  if (!console_.terminal) return 0;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col - 1 : 79;
}

// Expects the cursor at the beginning of the line below the last live line.
void Screen::Erase() {
  for (; drawn_ > 0; --drawn_) console_.out << "\x1b[1A\x1b[2K";
}

void Screen::Draw() {
  for (const std::string& line : live_) console_.out << line << "\n";
  drawn_ = live_.size();
  console_.out.flush();
}

}  // namespace tfjob::view
