// Determines whether the kernel's OOM killer killed a process. The kernel counts such kills, but
// does not report which processes it killed.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::process {

// Compares the kernel's count with the kills that callers have claimed. Not thread-safe.
class OomWatch {
 public:
  // `path` is a file in the format of /proc/vmstat. If it cannot be read, no kill is ever detected.
  explicit OomWatch(std::string path = "/proc/vmstat");

  // Call this when a process has died of SIGKILL. Returns true if the OOM killer has killed more
  // processes since construction than earlier calls have claimed. Each call claims at most one
  // kill.
  bool Claim();

 private:
  int64_t Count() const;

  const std::string path_;
  int64_t claimed_;
};

}  // namespace tfjob::process
