// Tests connections and handshakes with peers that know the protocol and violate it.
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/rpc/connection.h"
#include "runtime/rpc/grpc_arguments.h"
#include "runtime/rpc/grpc_stream.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/handshake.pb.h"
#include "runtime/rpc/server.h"
#include "runtime/wire/dial.h"

namespace tfjob::rpc {
namespace {

constexpr uint16_t kCredit = 0xFF02, kHello = 0xFFF1, kRefusal = 0xFFF3;

// Delivers one frame `copies` times. Further reads, and all writes, block until the transport is
// cancelled.
class ForgingTransport : public Transport {
 public:
  ForgingTransport(const FrameHeader& header, std::string payload, int copies = 1)
      : payload_(std::move(payload)), copies_(copies) {
    AppendPrefix({.header = header, .segments = {{.bytes = std::as_bytes(std::span(payload_))}}},
                 wire_);
    wire_ += payload_;
  }
  Status Write(const OutgoingFrame&) override { return writes ? OkStatus() : AwaitCancel(); }
  Status Read(IncomingFrame& frame) override {
    if (copies_-- <= 0) return AwaitCancel();
    frame.pieces = {std::as_bytes(std::span(wire_))};
    return frame.Parse();
  }
  void Cancel() override {
    MutexLock lock(mutex_);
    cancelled_ = true;
    changed_.NotifyAll();
  }
  bool writes = true;

 private:
  Status AwaitCancel() {
    MutexLock lock(mutex_);
    while (!cancelled_) changed_.Wait(mutex_);
    return Unavailable("cancelled");
  }
  const std::string payload_;
  std::string wire_;
  int copies_;
  Mutex mutex_;
  CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

struct Ignore : ConnectionHandler {
  void OnFrame(IncomingFrame& frame) override { frame.Skip(frame.remaining()); }
  bool NextFrame(OutgoingFrame&) override { return false; }
};

TEST(HostilePeer, CannotReturnCreditThatItWasNotGiven) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (int64_t value : {int64_t{-1}, int64_t{1}, kMost, -kMost - 1}) {
    ForgingTransport transport({.type = kCredit, .value = value}, "", 3);
    Ignore handler;
    EXPECT_EQ(Connection(transport, handler).Run().code(), StatusCode::kDataLoss) << value;
  }
}

TEST(HostilePeer, CannotSendWithoutCredit) {
  // This side cannot return credit, because nothing that it writes is read.
  ForgingTransport transport({.type = 1, .flags = 0x8000}, std::string(1 << 20, 'x'), 1000);
  transport.writes = false;
  Ignore handler;
  EXPECT_EQ(Connection(transport, handler, {.window = 1 << 20}).Run().code(),
            StatusCode::kDataLoss);
}

TEST(HostilePeer, IsGivenUpIfItsMessagesPileUp) {
  ForgingTransport transport({.type = 1}, "", 0);
  transport.writes = false;
  Ignore handler;
  Connection connection(transport, handler, {.max_queued_bytes = 1000});
  std::thread sends([&] {
    // The writer may already have taken the first message.
    for (int i = 0; i < 13; ++i) connection.Send({.type = 1}, std::string(100, 'x'));
  });
  const Status why = connection.Run();
  sends.join();
  EXPECT_EQ(why.code(), StatusCode::kResourceExhausted) << why;
}

TEST(HostilePeer, RefusesWithoutAnError) {
  for (int64_t code : {int64_t{0}, int64_t{-1}, int64_t{17}, int64_t{1} << 40}) {
    ForgingTransport transport({.type = kRefusal, .value = code}, "no");
    const Status status = Introduce(transport, "echo", {.task_type = "worker"}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnknown) << code;
  }
}

TEST(HostilePeer, CannotHaveAnyName) {
  const auto code = [](const std::string& type, int index, const std::string& uid) {
    Hello hello;
    hello.set_task_type(type);
    hello.set_task_index(index);
    hello.set_job_uid(uid);
    ForgingTransport transport({.type = kHello}, hello.SerializeAsString());
    return AwaitCaller(transport).status().code();
  };
  EXPECT_EQ(code("worker", 0, "0a1b-2c"), StatusCode::kOk);
  EXPECT_EQ(code("", 0, ""), StatusCode::kOk);
  EXPECT_EQ(code("wor\nker", 0, ""), StatusCode::kDataLoss);
  EXPECT_EQ(code("w\x1b[2J", 0, ""), StatusCode::kDataLoss);
  EXPECT_EQ(code(std::string(64, 'w'), 0, ""), StatusCode::kDataLoss);
  EXPECT_EQ(code("worker", -1, ""), StatusCode::kDataLoss);
  EXPECT_EQ(code("worker", 0, "a\r\nb"), StatusCode::kDataLoss);
  EXPECT_EQ(code("worker", 0, std::string(257, 'a')), StatusCode::kDataLoss);
}

// Counts the streams that it was asked to serve.
struct Counting : StreamHandler {
  Status Admit(const Identity&) override { return OkStatus(); }
  void Serve(const Identity&, const std::string&, Transport&) override { ++served; }
  std::atomic<int> served = 0;
};

// Serves every stream until its peer ends it.
struct Holding : Counting {
  void Serve(const Identity&, const std::string&, Transport& transport) override {
    ++served;
    IncomingFrame frame;
    while (transport.Read(frame).ok()) {
    }
  }
};

// A stream over a channel that several streams share.
class SharedChannelStream {
 public:
  SharedChannelStream(const std::shared_ptr<grpc::Channel>& channel, Duration timeout) {
    context_.set_deadline(std::chrono::system_clock::now() + timeout);
    const grpc::internal::RpcMethod method(kStreamMethod, grpc::internal::RpcMethod::BIDI_STREAMING,
                                           channel);
    stream_.reset(
        grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
            channel.get(), method, &context_));
  }
  Status Introduce(const Identity& self) {
    GrpcStream<Stream, grpc::ClientContext> transport(stream_.get(), &context_);
    return rpc::Introduce(transport, "echo", self).status();
  }
  grpc::StatusCode End() {
    stream_->WritesDone();
    return stream_->Finish().error_code();
  }

 private:
  using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
};

// Opens a connection as `owner`, and on it a stream as `self`.
Status Greet(const std::string& address, const Identity& owner, const Identity& self,
             grpc_compression_algorithm algorithm) {
  using Stream = grpc::ClientReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;
  StatusOr<wire::Dialled> dialled = wire::Dial(address, {.claims = *ClaimsOf(owner)});
  if (!dialled.ok()) return dialled.status();
  auto channel = grpc::CreateInsecureChannelFromFd(address, dialled->socket.Release());
  grpc::ClientContext context;
  context.set_compression_algorithm(algorithm);
  const grpc::internal::RpcMethod method(kStreamMethod, grpc::internal::RpcMethod::BIDI_STREAMING,
                                         channel);
  std::unique_ptr<Stream> stream(
      grpc::internal::ClientReaderWriterFactory<grpc::ByteBuffer, grpc::ByteBuffer>::Create(
          channel.get(), method, &context));
  GrpcStream<Stream, grpc::ClientContext> transport(stream.get(), &context);
  const Status status = Introduce(transport, "echo", self).status();
  context.TryCancel();
  (void)stream->Finish();
  return status;
}

TEST(TransportMemory, IsHalfOfWhatTheProcessMayUseButEnoughForManyStreams) {
  EXPECT_EQ(MostTransportBytes(int64_t{16} << 30), size_t{8} << 30);
  EXPECT_EQ(MostTransportBytes(int64_t{256} << 20), size_t{512} << 20);
}

// A compressed message might inflate to a thousand times its size, so it is never inflated.
TEST(HostilePeer, CannotCompressWhatItSends) {
  const Identity self{.job_uid = std::string(200, 'a'), .task_type = "ps"};
  Counting handler;
  auto server =
      *Server::Start({.host = "127.0.0.1", .identity = self, .streams = {{"echo", &handler}}});
  const std::string address = StrCat("127.0.0.1:", server->port());
  EXPECT_EQ(Greet(address, self, self, GRPC_COMPRESS_NONE), OkStatus());
  EXPECT_FALSE(Greet(address, self, self, GRPC_COMPRESS_GZIP).ok());
  server->Shutdown(Duration(20s));
  EXPECT_EQ(handler.served, 1);
}

TEST(HostilePeer, CannotOpenMoreStreamsThanAConnectionMayHave) {
  const Identity self{.job_uid = "job-a", .task_type = "ps"};
  Holding handler;
  auto server =
      *Server::Start({.host = "127.0.0.1", .identity = self, .streams = {{"echo", &handler}}});
  const std::string address = StrCat("127.0.0.1:", server->port());
  StatusOr<wire::Dialled> dialled = wire::Dial(address, {.claims = *ClaimsOf(self)});
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  auto channel = grpc::CreateInsecureChannelFromFd(address, dialled->socket.Release());
  std::vector<std::unique_ptr<SharedChannelStream>> streams;
  for (int i = 0; i < kMostStreamsOfAConnection; ++i) {
    streams.push_back(std::make_unique<SharedChannelStream>(channel, 60s));
    ASSERT_EQ(streams.back()->Introduce(self), OkStatus()) << i;
  }
  SharedChannelStream one_more(channel, 1s);
  EXPECT_FALSE(one_more.Introduce(self).ok());
  EXPECT_EQ(one_more.End(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(handler.served, kMostStreamsOfAConnection);
  // When one stream has ended, there is room for another.
  EXPECT_EQ(streams.back()->End(), grpc::StatusCode::OK);
  streams.back() = std::make_unique<SharedChannelStream>(channel, 60s);
  EXPECT_EQ(streams.back()->Introduce(self), OkStatus());
  for (const auto& stream : streams) EXPECT_EQ(stream->End(), grpc::StatusCode::OK);
}

TEST(HostilePeer, CannotOpenAStreamAsAnotherTask) {
  const Identity self{.job_uid = "job-a", .task_type = "ps"};
  const Identity worker{.job_uid = "job-a", .task_type = "worker", .task_index = 1};
  Identity chief = worker;
  chief.task_type = "chief";
  Counting handler;
  auto server =
      *Server::Start({.host = "127.0.0.1", .identity = self, .streams = {{"echo", &handler}}});
  const std::string address = StrCat("127.0.0.1:", server->port());
  EXPECT_EQ(Greet(address, worker, chief, GRPC_COMPRESS_NONE),
            FailedPrecondition("refused: the stream is of chief 1, but its connection was opened "
                               "by worker 1"));
  server->Shutdown(Duration(20s));
  EXPECT_EQ(handler.served, 0);
}

}  // namespace
}  // namespace tfjob::rpc
