#include "runtime/rpc/message_memory.h"

#include "runtime/base/env.h"

namespace tfjob::rpc {

MessageMemory& MessageMemory::OfProcess() {
  static auto* const memory = new MessageMemory(MostMessageBytes(AvailableMemory()));
  return *memory;
}

Status MessageMemory::Lease::Take(size_t bytes) {
  const auto more = static_cast<int64_t>(bytes);
  if (memory_.used_.fetch_add(more) + more <= memory_.most_) {
    bytes_ += more;
    return OkStatus();
  }
  memory_.used_ -= more;
  return ResourceExhausted("a message of more than ", bytes_,
                           " bytes: with those of other streams, more than ", memory_.most_,
                           " bytes");
}

}  // namespace tfjob::rpc
