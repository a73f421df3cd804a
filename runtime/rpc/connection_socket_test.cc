// Tests a connection in cases that occur only over a socket: frames arrive in part or several at
// once, and the socket's buffer is full.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/rpc/connection.h"
#include "runtime/rpc/peer_watch.h"
#include "runtime/rpc/socket_transport.h"
#include "tests/sanitized.h"

namespace tfjob::rpc {
namespace {

constexpr uint16_t kInPlace = 7, kLoaded = 8;

struct Handler : ConnectionHandler {
  void OnFrame(IncomingFrame& frame) override {
    ++frames;
    if (on_frame) on_frame(frame);
  }
  bool TakesInPlace(const FrameHeader& header) const override { return header.type == kInPlace; }
  bool NextFrame(OutgoingFrame& frame) override {
    if (payload.empty()) return false;
    frame.header = {.type = kInPlace};
    frame.segments.push_back(
        {.bytes = payload,
         .release = [](void* self) { ++static_cast<Handler*>(self)->released; },
         .argument = this});
    payload = {};
    return true;
  }

  std::function<void(IncomingFrame&)> on_frame;
  std::span<const std::byte> payload;  // the payload of the only data frame
  std::atomic<int> frames = 0, released = 0;
};

// One end of a socket belongs to a connection, the other end to the test.
class ConnectionOverASocket : public testing::Test {
 protected:
  ConnectionOverASocket() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    transport_ = std::make_unique<SocketTransport>(wire::UniqueFd(ends[0]));
    far_ = wire::UniqueFd(ends[1]);
    connection_ =
        std::make_unique<Connection>(*transport_, handler_, ConnectionOptions{.heartbeat = 1h});
  }
  void Say(std::string_view bytes) const {
    EXPECT_EQ(send(far_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static std::string Frame(uint16_t type, const std::string& payload) {
    std::string bytes;
    AppendPrefix(
        {.header = {.type = type}, .segments = {{.bytes = std::as_bytes(std::span(payload))}}},
        bytes);
    return bytes + payload;
  }

  Handler handler_;
  std::unique_ptr<SocketTransport> transport_;
  wire::UniqueFd far_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionOverASocket, HandlesNoFrameAfterItWasCancelled) {
  handler_.on_frame = [this](IncomingFrame&) { connection_->Cancel(DataLoss("wrong")); };
  Say(Frame(kLoaded, "one") + Frame(kLoaded, "two") + Frame(kInPlace, "three"));
  EXPECT_EQ(connection_->Run(), DataLoss("wrong"));
  EXPECT_EQ(handler_.frames, 1);
}

class EveryType : public ConnectionOverASocket, public testing::WithParamInterface<uint16_t> {};

TEST_P(EveryType, APeerThatStopsWithinAFrameIsNamed) {
  const bool in_place = GetParam() == kInPlace;
  Status received;
  handler_.on_frame = [&](IncomingFrame& frame) {
    std::vector<std::byte> place(frame.remaining());
    received = frame.Receive(place);
  };
  const std::string frame = Frame(GetParam(), std::string(100'000, 'x'));
  Say(frame.substr(0, frame.size() / 2));
  PeerWatch watch(nullptr, {.suspect_after = 100ms, .lease = 300ms * kSlowdown});
  const auto ticket =
      watch.Add({.connection = connection_.get(), .peer = "ps 0 (here)", .on_change = nullptr});
  const Status why = connection_->Run();
  watch.Remove(ticket);
  EXPECT_TRUE(Message(why).starts_with("ps 0 (here) gave no sign of life for ")) << why;
  EXPECT_EQ(handler_.frames, in_place ? 1 : 0);
  EXPECT_EQ(received.code(), in_place ? StatusCode::kUnavailable : StatusCode::kOk);
}

INSTANTIATE_TEST_SUITE_P(, EveryType, testing::Values(kInPlace, kLoaded), [](const auto& info) {
  return info.param == kInPlace ? "InPlace" : "Loaded";
});

TEST_F(ConnectionOverASocket, LeavesToItsWriterWhatTheSocketDoesNotTake) {
  std::thread reader([this] { EXPECT_EQ(connection_->Run().code(), StatusCode::kUnavailable); });
  const std::vector<std::byte> payload(8 << 20, std::byte{42});
  handler_.payload = payload;
  // Flush has no effect before Run has started.
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (!handler_.payload.empty() && std::chrono::steady_clock::now() < deadline) {
    connection_->Flush();
  }
  EXPECT_FALSE(connection_->Drained());
  EXPECT_EQ(handler_.released, 0);
  std::string got(kHeaderBytes + kSegmentBytes + payload.size(), '\0');
  EXPECT_EQ(recv(far_.get(), got.data(), got.size(), MSG_WAITALL),
            static_cast<ssize_t>(got.size()));
  EXPECT_EQ(got.find_first_not_of('\x2a', kHeaderBytes + kSegmentBytes), std::string::npos);
  while (!connection_->Drained() && std::chrono::steady_clock::now() < deadline) {
  }
  EXPECT_TRUE(connection_->Drained());
  EXPECT_EQ(handler_.released, 1);
  far_ = wire::UniqueFd();
  reader.join();
}

}  // namespace
}  // namespace tfjob::rpc
