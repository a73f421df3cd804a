#include "operator/view/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "operator/view/printable.h"

namespace tfjob::view {
namespace {

// Returns the size of the terminal; zeros if it is unknown.
winsize TerminalSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

}  // namespace

void Screen::Line(std::string_view text) {
  Erase();
  console_.out << PrintableLine(text) << "\n";
  Draw();
}

void Screen::Live(std::vector<std::string> lines) {
  if (!console_.terminal) return;
  // Limit the number of lines, because a line that has been scrolled out of the terminal cannot be
  // overwritten.
  if (const size_t most = height(); lines.size() > most) {
    const size_t hidden = lines.size() - (most - 1);
    lines.resize(most - 1);
    lines.push_back(StrCat("and ", hidden, " more"));
  }
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
  const winsize size = TerminalSize();
  return size.ws_col > 0 ? size.ws_col - 1 : 79;
}

// Leaves room for the cursor, which stays in the row below the live lines.
size_t Screen::height() const {
  if (!console_.terminal) return 0;
  const winsize size = TerminalSize();
  return size.ws_row > 0 ? std::max(size.ws_row - 1, 1) : 23;
}

// Erases the live lines. Expects the cursor at the beginning of the line below the last one.
void Screen::Erase() {
  for (; drawn_ > 0; --drawn_) console_.out << "\x1b[1A\x1b[2K";
}

void Screen::Draw() {
  for (const std::string& line : live_) console_.out << line << "\n";
  drawn_ = live_.size();
  console_.out.flush();
}

}  // namespace tfjob::view
