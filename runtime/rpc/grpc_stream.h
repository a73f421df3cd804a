// Implements Transport, for both ends, over one gRPC call whose messages are raw byte buffers.
// Private to this package.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <utility>
#include <vector>

#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

inline constexpr char kStreamMethod[] = "/tfjob.rpc.Stream/Open";

// `Stream` is ClientReaderWriter or ServerReaderWriter over grpc::ByteBuffer, and `Context` is
// ClientContext or ServerContext. Both objects are borrowed.
template <typename Stream, typename Context>
class GrpcStream : public Transport {
 public:
  GrpcStream(Stream* stream, Context* context) : stream_(stream), context_(context) {}

  Status Write(const OutgoingFrame& frame) override {
    prefix_.clear();
    AppendPrefix(frame, prefix_);
    if (PayloadBytes(frame) <= kCopiedBytes) {
      CopyPayload(frame);
    } else {
      LendPayload(frame);
    }
    grpc::ByteBuffer buffer(outgoing_.data(), outgoing_.size());
    outgoing_.clear();
    if (!stream_->Write(buffer)) return Unavailable("the connection is closed");
    return OkStatus();
  }

  Status Read(IncomingFrame& frame) override {
    frame.pieces.clear();
    incoming_.clear();
    buffer_.Clear();
    if (!stream_->Read(&buffer_)) return Unavailable("the connection is closed");
    if (!buffer_.Dump(&incoming_).ok()) return DataLoss("a message is unreadable");
    for (const grpc::Slice& slice : incoming_) {
      frame.pieces.push_back({reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
    }
    return frame.Parse();
  }

  void Cancel() override { context_->TryCancel(); }

 private:
  // Up to this size, copying a payload costs less than adding a separate slice for it.
  static constexpr size_t kCopiedBytes = 4096;

  void CopyPayload(const OutgoingFrame& frame) {
    for (const Segment& segment : frame.segments) {
      prefix_.append(reinterpret_cast<const char*>(segment.bytes.data()), segment.bytes.size());
      if (segment.release != nullptr) segment.release(segment.argument);
    }
    outgoing_.emplace_back(prefix_);
  }

  void LendPayload(const OutgoingFrame& frame) {
    outgoing_.emplace_back(prefix_);
    for (const Segment& segment : frame.segments) {
      // An empty segment with a `release` is passed on, so that gRPC calls the release.
      if (segment.bytes.empty() && segment.release == nullptr) continue;
      // If there is no `release`, the bytes are valid only until Write returns, so this slice is
      // a copy.
      if (segment.release == nullptr) {
        outgoing_.emplace_back(segment.bytes.data(), segment.bytes.size());
      } else {
        // gRPC only reads the memory, but grpc::Slice takes a non-const pointer.
        outgoing_.emplace_back(const_cast<std::byte*>(segment.bytes.data()), segment.bytes.size(),
                               segment.release, segment.argument);
      }
    }
  }

  Stream* stream_;
  Context* context_;
  std::string prefix_;
  std::vector<grpc::Slice> outgoing_;
  grpc::ByteBuffer buffer_;
  std::vector<grpc::Slice> incoming_;
};

}  // namespace tfjob::rpc
