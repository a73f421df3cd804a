// Limits the total memory of large messages that are arriving or being handled in all streams of
// this process. Without the limit, a peer could use up the memory that the variables need by
// opening many streams and sending the largest possible message on each. Private to this package.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/status.h"

namespace tfjob::rpc {

// Messages of up to this size are not counted.
inline constexpr size_t kSmallMessageBytes = size_t{4} << 20;

// Returns how much memory large messages may use in a process that may use `available` bytes: half
// of `available`, but at least 512 MiB, which is enough for several messages of the largest size.
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
    // Reserves `bytes` more bytes for the message. Returns ResourceExhausted, and reserves no
    // memory, if the total size of the messages of all streams would be too large.
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
