// Defines the header of the frames between the ranks of a SocketCommunicator: 64 bytes, all numbers
// little-endian. Private to this package.
//
//   0 magic   4 kind   5 operation's kind   6 dtype   7 reduction   8 root   12 number
//   16 operation's number   24 bytes of the span   32 bytes of an element
//   40 fingerprint of the plan   48 offset   56 length of the payload
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/status.h"
#include "runtime/collectives/plan/plan.h"

namespace tfjob::collectives {

enum class FrameKind : uint8_t {
  kData = 1,   // one transfer of a plan
  kCall = 2,   // names the call of a sender that has waited for a long time; sent once per rank
  kAbort = 3,  // the operation fails; `number` is the status code, and the payload its message
  kLeave = 4,  // like kAbort, but concerns only ranks that still need the sender
};

struct FrameHeader {
  FrameKind kind = FrameKind::kData;
  Call call;
  int64_t operation = 0;
  uint64_t fingerprint = 0;
  uint32_t number = 0;  // the frame's index on its link in the operation, from 0
  int64_t offset = 0;   // where the payload starts in the operation's values
  int64_t length = 0;   // the length of the payload
};

inline constexpr size_t kFrameHeaderBytes = 64;
inline constexpr int64_t kMostReasonBytes = 512;  // for the payload of kAbort and kLeave
using FrameBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameBytes EncodeFrame(const FrameHeader& header);
// Returns DataLoss, with a message that says what is wrong, if the bytes are not a header or
// contain an impossible value.
StatusOr<FrameHeader> DecodeFrame(std::span<const std::byte, kFrameHeaderBytes> bytes);

}  // namespace tfjob::collectives
