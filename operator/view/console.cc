#include "operator/view/console.h"

#include <istream>
#include <iterator>
#include <ostream>
#include <sstream>

#include "operator/view/printable.h"
#include "runtime/base/file.h"

namespace tfjob::view {

StatusOr<std::string> ReadInput(const std::string& path, Console& console) {
  if (path != "-") return ReadFile(path);
  return std::string(std::istreambuf_iterator<char>(console.in), {});
}

std::string InputName(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

void PrintError(Console& console, const Status& status) {
  std::istringstream lines{std::string(Message(status))};
  for (std::string line; std::getline(lines, line);) {
    console.err << "tfjob: " << PrintableLine(line) << "\n";
  }
}

void PrintWarning(Console& console, std::string_view text) {
  console.err << "tfjob: warning: " << PrintableLine(text) << "\n";
}

void PrintNote(Console& console, std::string_view text) {
  console.err << "tfjob: note: " << PrintableLine(text) << "\n";
}

}  // namespace tfjob::view
