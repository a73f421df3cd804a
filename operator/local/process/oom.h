// Determines whether the kernel killed a process for lack of memory. The kernel reports only that
// it killed one.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::process {

// Not thread-safe.
class OomWatch {
 public:
  // `path` is read like /proc/vmstat. If it cannot be read, no kill is ever detected.
  explicit OomWatch(std::string path = "/proc/vmstat");

  // Call it for a process that was killed by SIGKILL, but not by us. True if the kernel has killed
  // more processes than were claimed so far. Each kill by the kernel answers one call.
  bool Claim();

 private:
  int64_t Count() const;

  const std::string path_;
  int64_t claimed_;
};

}  // namespace tfjob::process
