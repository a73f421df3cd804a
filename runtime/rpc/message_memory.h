// Limits the memory that large messages take while they arrive and are handled, over all streams of
// this process. Without the limit, a peer that opens many streams and sends the largest possible
// message in each could take the memory that the variables need. Private to this package.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"

namespace tfjob::rpc {

// Messages of up to this size are not counted.
inline constexpr size_t kSmallMessageBytes = size_t{4} << 20;

// Returns how much memory large messages may take in a process that may use `available` bytes: half
// of it, but at least 512 MiB, which is enough for several messages of the largest size.
constexpr int64_t MostMessageBytes(int64_t available) {
  constexpr int64_t kLeast = int64_t{512} << 20;
  return available / 2 < kLeast ? kLeast : available / 2;
}

// Thread-safe.
class MessageMemory {
 public:
  explicit MessageMemory(int64_t most_bytes) : most_(most_bytes) {}
  static MessageMemory& OfProcess();

  // The memory of one message, returned when the lease is destroyed.
  class Lease {
   public:
    explicit Lease(MessageMemory& memory) : memory_(memory) {}
    ~Lease() { memory_.used_ -= bytes_; }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    // Called when the message needs `bytes` more bytes. Returns ResourceExhausted, and takes
    // nothing, if the messages of all streams together would then take too much memory.
    Status Take(size_t bytes);

   private:
    MessageMemory& memory_;
    int64_t bytes_ = 0;
  };

 private:
  const int64_t most_;
  std::atomic<int64_t> used_ = 0;
};

}  // namespace tfjob::rpc
