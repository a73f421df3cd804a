// Tests connections and handshakes with peers that deliberately violate the protocol.
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "runtime/rpc/connection.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/handshake.pb.h"

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
  // This side cannot return credit, because the peer does not read.
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
    // Send more messages than needed to exceed the limit, because the writer may already have taken
    // one.
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

}  // namespace
}  // namespace tfjob::rpc
