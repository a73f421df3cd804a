// Builds frames from contents that a test specifies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/rpc/transport.h"

namespace tfjob::ps {

struct Bytes {
  uint32_t index = 0;  // of the shard
  uint32_t slot = 0;
  uint64_t offset = 0;
  std::string bytes;
};

inline std::string Floats(size_t count, float value) {
  const std::vector<float> values(count, value);
  return {reinterpret_cast<const char*>(values.data()), count * sizeof(float)};
}

// The frame refers to the bytes of `parts`, which must outlive it.
inline rpc::OutgoingFrame MakeFrame(const rpc::FrameHeader& header,
                                    const std::vector<Bytes>& parts) {
  rpc::OutgoingFrame frame{.header = header, .segments = {}};
  for (const Bytes& part : parts) {
    frame.segments.push_back({.index = part.index,
                              .flags = part.slot,
                              .offset = part.offset,
                              .bytes = std::as_bytes(std::span(part.bytes))});
  }
  return frame;
}

}  // namespace tfjob::ps
