#include "operator/cli/verbs/log_printer.h"

#include <utility>

#include "operator/view/printable.h"

namespace tfjob::cli {

bool LogPrinter::Print(std::string_view prefix, std::string_view line) {
  MutexLock lock(mutex_);
  if (!prefix.empty()) out_ << prefix << " | ";
  if (terminal_) {
    out_ << view::PrintableLine(line) << "\n";
  } else {
    out_ << line << "\n";
  }
  out_.flush();
  return out_.good();
}

bool LogPrinter::broken() {
  MutexLock lock(mutex_);
  return !out_.good();
}

bool LineCutter::Add(std::string_view bytes) {
  for (size_t end = 0; (end = bytes.find('\n')) != std::string_view::npos;) {
    rest_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    if (!take_(std::exchange(rest_, ""))) return false;
  }
  rest_ += bytes;
  while (rest_.size() > kLongestLine) {
    if (!take_(std::string_view(rest_).substr(0, kLongestLine))) return false;
    rest_.erase(0, kLongestLine);
  }
  return true;
}

void LineCutter::Finish() {
  if (!rest_.empty()) take_(std::exchange(rest_, ""));
}

}  // namespace tfjob::cli
