// Until when this process may take itself for the leader: what a writer asks before each write.
#pragma once

#include <atomic>

#include "runtime/base/clock.h"

namespace tfjob::kube {

// Thread-safe; asking costs one atomic load and a look at the clock. Begins as not held. Ends by
// itself when nobody extends it in time, and once it has ended it stays so.
class Leadership {
 public:
  explicit Leadership(Clock& clock) : clock_(clock) {}

  bool held() const;
  // Until this moment of Clock::Monotonic(). False, and nothing changes, when it has ended or its
  // time was up already.
  bool Extend(Duration until);
  // For ever.
  void End();

 private:
  static constexpr int64_t kNever = 0;   // not held yet
  static constexpr int64_t kEnded = -1;  // and never again

  Clock& clock_;
  std::atomic<int64_t> until_{kNever};  // microseconds
};

}  // namespace tfjob::kube
