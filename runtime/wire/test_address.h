// Provides addresses for the tasks of a test. A task can listen on its address at once or later,
// and again after a restart. A port that the kernel assigns is not suitable: as soon as the port is
// free, another process may get it, even for an outgoing connection.
#pragma once

#include <string>

#include "runtime/base/check.h"
#include "runtime/base/mutex.h"
#include "runtime/wire/loopback_ports.h"

namespace tfjob::wire {

// Returns 127.0.0.1:PORT. Every call returns a different port, even among tests that run on this
// machine at the same time. The port stays reserved until the process exits. Thread-safe.
inline std::string TestAddress() {
  static Mutex mutex;
  static LoopbackPorts ports;
  static int32_t next = 0, end = 0;  // the ports that are reserved and not yet used
  MutexLock lock(mutex);
  if (next == end) {
    constexpr int32_t kCount = 32;
    const StatusOr<int32_t> first = ports.Choose(kCount);
    ENFORCE(first.ok(), first.status().ToString());
    next = *first;
    end = next + kCount;
  }
  return StrCat("127.0.0.1:", next++);
}

}  // namespace tfjob::wire
