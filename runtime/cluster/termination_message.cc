#include "runtime/cluster/termination_message.h"

#include <fcntl.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/env.h"

namespace tfjob::cluster {
namespace {

constexpr size_t kMaxMessage = 4096;

}  // namespace

std::string TerminationLog() {
  const std::string file = GetEnv("TFJOB_TERMINATION_LOG").value_or("");
  return file.empty() ? "/dev/termination-log" : file;
}

void WriteTerminationMessage(const std::string& file, std::string_view message) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(message.data(), message.size()), '\n', absl::SkipEmpty());
  std::string text = absl::StrJoin(lines, "; ").substr(0, kMaxMessage);
  const int descriptor = open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return;
  // Ignore errors, because the message is also in the log.
  [[maybe_unused]] const ssize_t written = write(descriptor, text.data(), text.size());
  close(descriptor);
}

}  // namespace tfjob::cluster
