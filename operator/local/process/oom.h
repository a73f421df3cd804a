// Whether the kernel killed a process for want of memory. The kernel tells only that it killed one.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::process {

// Not thread-safe.
class OomWatch {
 public:
  // `path` is read as /proc/vmstat; a file that cannot be read means that nothing is ever known.
  explicit OomWatch(std::string path = "/proc/vmstat");

  // For a process that ended by SIGKILL and not by our hand: whether the kernel has killed more
  // processes than it had when this was last asked. Each kill of the kernel answers one call.
  bool Claim();

 private:
  int64_t Count() const;

  const std::string path_;
  int64_t claimed_;
};

}  // namespace tfjob::process
