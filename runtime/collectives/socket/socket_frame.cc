#include "runtime/collectives/socket/socket_frame.h"

#include <algorithm>
#include <cstring>

#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

constexpr uint32_t kMagic = 0x31434654;  // "TFC1"

template <typename T>
void Put(FrameBytes& bytes, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    bytes[at + i] = static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

template <typename T>
T Get(std::span<const std::byte, kFrameHeaderBytes> bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  return static_cast<T>(value);
}

Status CheckValues(const FrameHeader& header) {
  const auto kind = static_cast<int>(header.kind);
  const auto operation = static_cast<int>(header.call.operation);
  if (kind < 1 || kind > static_cast<int>(FrameKind::kLeave)) {
    return DataLoss("a frame of the unknown kind ", kind);
  }
  if (operation < 1 || operation > static_cast<int>(Operation::kAllocate)) {
    return DataLoss("a frame of the unknown operation ", operation);
  }
  if (!DTypeFromTensorFlow(static_cast<int>(header.call.dtype)) ||
      header.call.reduction > Reduction::kMean) {
    return DataLoss("a frame with an unknown type or reduction");
  }
  if (header.call.bytes < 0 || header.call.element_bytes < 0 || header.call.root < 0 ||
      header.operation < 0 || header.offset < 0 || header.length < 0) {
    return DataLoss("a frame with a negative size");
  }
  const bool reason = header.kind == FrameKind::kAbort || header.kind == FrameKind::kLeave;
  const int64_t most = reason ? kMostReasonBytes : std::max(header.call.bytes, kPlaceBytes);
  if (header.length > most || (header.kind == FrameKind::kCall && header.length > 0)) {
    return DataLoss("a frame of ", header.length, " bytes, of which at most ", most,
                    " are possible");
  }
  return OkStatus();
}

}  // namespace

FrameBytes EncodeFrame(const FrameHeader& header) {
  FrameBytes bytes;
  Put(bytes, 0, kMagic);
  Put(bytes, 4, static_cast<uint8_t>(header.kind));
  Put(bytes, 5, static_cast<uint8_t>(header.call.operation));
  Put(bytes, 6, static_cast<uint8_t>(header.call.dtype));
  Put(bytes, 7, static_cast<uint8_t>(header.call.reduction));
  Put(bytes, 8, static_cast<uint32_t>(header.call.root));
  Put(bytes, 12, header.number);
  Put(bytes, 16, header.operation);
  Put(bytes, 24, header.call.bytes);
  Put(bytes, 32, header.call.element_bytes);
  Put(bytes, 40, header.fingerprint);
  Put(bytes, 48, header.offset);
  Put(bytes, 56, header.length);
  return bytes;
}

StatusOr<FrameHeader> DecodeFrame(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  if (Get<uint32_t>(bytes, 0) != kMagic)
    return DataLoss("bytes that are not the header of a frame");
  FrameHeader header;
  header.kind = static_cast<FrameKind>(Get<uint8_t>(bytes, 4));
  header.call.operation = static_cast<Operation>(Get<uint8_t>(bytes, 5));
  header.call.dtype = static_cast<DType>(Get<uint8_t>(bytes, 6));
  header.call.reduction = static_cast<Reduction>(Get<uint8_t>(bytes, 7));
  header.call.root = static_cast<int>(Get<uint32_t>(bytes, 8));
  header.number = Get<uint32_t>(bytes, 12);
  header.operation = Get<int64_t>(bytes, 16);
  header.call.bytes = Get<int64_t>(bytes, 24);
  header.call.element_bytes = Get<int64_t>(bytes, 32);
  header.fingerprint = Get<uint64_t>(bytes, 40);
  header.offset = Get<int64_t>(bytes, 48);
  header.length = Get<int64_t>(bytes, 56);
  RETURN_IF_ERROR(CheckValues(header));
  return header;
}

}  // namespace tfjob::collectives
