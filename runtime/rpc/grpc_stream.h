// A transport over one gRPC call of raw byte buffers; the same for both ends. Inside the room only.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/sync_stream.h>

#include <utility>
#include <vector>

#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

inline constexpr char kStreamMethod[] = "/tfjob.rpc.Stream/Open";

// `Stream` is ClientReaderWriter or ServerReaderWriter over grpc::ByteBuffer, `Context` its
// context. Both are borrowed.
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
    if (!buffer_.Dump(&incoming_).ok()) return DataLoss("a message that cannot be read");
    for (const grpc::Slice& slice : incoming_) {
      frame.pieces.push_back({reinterpret_cast<const std::byte*>(slice.begin()), slice.size()});
    }
    return frame.Parse();
  }

  void Cancel() override { context_->TryCancel(); }

 private:
  // Up to here a copy costs less than a slice of its own.
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
      if (segment.bytes.empty() && segment.release == nullptr) continue;
      if (segment.release == nullptr) {
        outgoing_.emplace_back(segment.bytes.data(), segment.bytes.size());
      } else {
        // gRPC only reads; its C interface takes memory without const.
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
