#include "runtime/rpc/message_memory.h"

#include "runtime/base/env.h"

namespace tfjob::rpc {

MessageMemory& MessageMemory::OfProcess() {
  static auto* const memory = new MessageMemory(MostMessageBytes(AvailableMemory()));
  return *memory;
}

Status MessageMemory::Lease::Take(size_t bytes) {
  if (bytes <= kSmallMessageBytes) return OkStatus();
  bytes_ = static_cast<int64_t>(bytes);
  if (memory_.used_.fetch_add(bytes_) + bytes_ <= memory_.most_) return OkStatus();
  return ResourceExhausted("a message of ", bytes,
                           " bytes: with those of other streams, more than ", memory_.most_,
                           " bytes");
}

}  // namespace tfjob::rpc
