// Determines whether the kernel killed a process for lack of memory. The kernel only counts such
// kills; it does not say which processes it killed.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::process {

// Not thread-safe.
class OomWatch {
 public:
  // `path` is a file in the format of /proc/vmstat. If it cannot be read, no kill is ever detected.
  explicit OomWatch(std::string path = "/proc/vmstat");

  // Call it for a process that was killed by SIGKILL. Returns true if the kernel has killed more
  // processes than earlier calls have claimed; each kill is claimed by only one call.
  bool Claim();

 private:
  int64_t Count() const;

  const std::string path_;
  int64_t claimed_;
};

}  // namespace tfjob::process
