// Tests the streams of a server with peers that have proven the key but violate the protocol.
#include "runtime/rpc/stream_server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <random>

#include "runtime/rpc/data_connection.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/message_memory.h"
#include "runtime/rpc/server.h"
#include "runtime/rpc/socket_connector.h"
#include "runtime/rpc/socket_transport.h"

namespace tfjob::rpc {
namespace {

constexpr uint16_t kHello = 0xFFF1;

// Counts calls of Serve.
struct Counting : StreamHandler {
  Status Admit(const Identity&) override { return OkStatus(); }
  void Serve(const Identity&, const std::string&, Transport&) override { ++served; }
  std::atomic<int> served = 0;
};

// Serves every stream until the peer closes it.
struct Holding : Counting {
  void Serve(const Identity&, const std::string&, Transport& transport) override {
    ++served;
    IncomingFrame frame;
    while (transport.Read(frame).ok()) {
    }
  }
};

TEST(MessageMemory, IsHalfOfWhatTheProcessMayUseButEnoughForSomeMessages) {
  EXPECT_EQ(MostMessageBytes(int64_t{16} << 30), int64_t{8} << 30);
  EXPECT_EQ(MostMessageBytes(int64_t{256} << 20), int64_t{512} << 20);
}

TEST(MessageMemory, IsLimitedOverAllStreams) {
  constexpr size_t kLarge = size_t{60} << 20;
  MessageMemory memory(int64_t{100} << 20);
  MessageMemory::Lease first(memory);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(first.Take(kLarge / 2), OkStatus());
  {
    MessageMemory::Lease second(memory);
    EXPECT_EQ(second.Take(kLarge).code(), StatusCode::kResourceExhausted);
  }
  MessageMemory::Lease third(memory);
  EXPECT_EQ(third.Take(size_t{40} << 20), OkStatus()) << "a refused message takes nothing";
}

class HostileStream : public testing::Test {
 protected:
  // Starts the server. Returns the handler.
  template <typename Handler>
  const Handler& Serve(Handler& handler) {
    server_ =
        *Server::Start({.host = "127.0.0.1", .identity = self_, .streams = {{"echo", &handler}}});
    return handler;
  }
  std::string address() const { return StrCat("127.0.0.1:", server_->port()); }
  // Opens a socket as `owner`, without sending a frame.
  StatusOr<DataConnection> Open(const Identity& owner) const {
    return DialData(address(), kStreamChannel, owner, {}, 10s);
  }
  // Opens a stream as `caller` on a socket of `owner`. Returns the reason why the server refuses
  // it.
  Status Greet(const Identity& owner, const Identity& caller) const {
    ASSIGN_OR_RETURN(DataConnection connection, Open(owner));
    SocketTransport transport(std::move(connection.socket));
    return Introduce(transport, "echo", caller).status();
  }

  const Identity self_{.job_uid = "job-a", .task_type = "ps"};
  const Identity worker_{.job_uid = "job-a", .task_type = "worker", .task_index = 1};
  // The server's threads use a handler until the server has been destroyed.
  Counting counting_;
  Holding holding_;
  std::unique_ptr<Server> server_;
};

TEST_F(HostileStream, CannotComeFromAnotherTaskThanItsSocket) {
  Identity chief = worker_;
  chief.task_type = "chief";
  const Counting& handler = Serve(counting_);
  EXPECT_EQ(Greet(worker_, chief),
            FailedPrecondition("refused: the stream is of chief 1, but its connection was opened "
                               "by worker 1"));
  EXPECT_EQ(Greet(worker_, worker_), OkStatus());
  server_->Shutdown(Duration(20s));
  EXPECT_EQ(handler.served, 1);
}

TEST_F(HostileStream, HasALimitPerTask) {
  Serve(holding_);
  const auto connector = MakeSocketConnector();
  std::vector<OpenStream> streams;
  for (int i = 0; i < kMostStreamsOfATask; ++i) {
    StatusOr<OpenStream> stream = connector->Connect(address(), "echo", worker_, 20s);
    ASSERT_TRUE(stream.ok()) << stream.status();
    streams.push_back(*std::move(stream));
  }
  EXPECT_EQ(connector->Connect(address(), "echo", worker_, 20s).status(),
            ResourceExhausted(address(), ": refused: ps 0 already has 64 streams of worker 1"));
  Identity other = worker_;
  other.task_index = 2;
  EXPECT_TRUE(connector->Connect(address(), "echo", other, 20s).ok());
  // Once a stream is closed, another one is admitted.
  streams.pop_back();
  const Duration deadline = RealClock().Monotonic() + 20s;
  Status status = ResourceExhausted("");
  while (absl::IsResourceExhausted(status) && RealClock().Monotonic() < deadline) {
    status = connector->Connect(address(), "echo", worker_, 20s).status();
  }
  EXPECT_EQ(status, OkStatus());
}

// Returns whether the task closes the connection within 20 s.
bool IsClosed(const wire::UniqueFd& socket) {
  char byte = 0;
  return wire::AwaitSocket(socket.get(), POLLIN, RealClock().Monotonic() + 20s) &&
         recv(socket.get(), &byte, 1, MSG_DONTWAIT) <= 0;
}

// Returns all bytes that arrive until the socket is closed.
std::string Refusal(const wire::UniqueFd& socket) {
  std::string heard;
  char buffer[256];
  const Duration deadline = RealClock().Monotonic() + 20s;
  while (wire::AwaitSocket(socket.get(), POLLIN, deadline)) {
    const ssize_t got = recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got <= 0) return heard;
    heard.append(buffer, static_cast<size_t>(got));
  }
  return "the connection stays open";
}

TEST_F(HostileStream, IsRefusedIfItBeginsWithAnythingElse) {
  const Counting& handler = Serve(counting_);
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    StatusOr<DataConnection> connection = Open(worker_);
    ASSERT_TRUE(connection.ok()) << connection.status();
    std::string bytes(kHeaderBytes + random() % 3000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    // Announce an impossible number of segments. If the number were possible, the task would wait
    // for the table.
    bytes[7] = '\x7f';
    (void)send(connection->socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    EXPECT_NE(Refusal(connection->socket).find("segments"), std::string::npos) << round;
  }
  EXPECT_EQ(handler.served, 0);
}

TEST_F(HostileStream, CannotMakeATaskReadALargeGreeting) {
  const Counting& handler = Serve(counting_);
  StatusOr<DataConnection> connection = Open(worker_);
  ASSERT_TRUE(connection.ok()) << connection.status();
  std::string bytes;
  const std::string large(1 << 20, 'x');
  AppendPrefix(
      {.header = {.type = kHello}, .segments = {{.bytes = std::as_bytes(std::span(large))}}},
      bytes);
  // The announced size alone breaks the stream. The bytes need not be sent.
  (void)send(connection->socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  EXPECT_NE(Refusal(connection->socket).find("unreadable"), std::string::npos);
  EXPECT_EQ(handler.served, 0);
}

// Admits no task but ps 0.
struct Choosy : Counting {
  Status Admit(const Identity& peer) override {
    return peer.task_type == "ps" ? OkStatus() : FailedPrecondition("who is that?");
  }
};

TEST_F(HostileStream, GetsNoThreadIfNoServiceAdmitsItsTask) {
  Choosy choosy;
  Serve(choosy);
  const Status refusal = Open(worker_).status();
  EXPECT_EQ(refusal.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(refusal).find("who is that?"), std::string_view::npos) << refusal;
}

TEST_F(HostileStream, IsRefusedWhileManyOthersAreInTheirHandshake) {
  Serve(counting_);
  std::vector<DataConnection> silent;
  for (int i = 0; i < kMostGreeting; ++i) {
    StatusOr<DataConnection> connection =
        Open({.job_uid = "job-a", .task_type = "worker", .task_index = i, .incarnation = 1});
    ASSERT_TRUE(connection.ok()) << connection.status();
    silent.push_back(*std::move(connection));
  }
  const Status refusal = Open(worker_).status();
  EXPECT_NE(Message(refusal).find("are in their handshake"), std::string_view::npos) << refusal;
  silent.clear();
  // The server soon notices that these connections are closed.
  const Duration deadline = RealClock().Monotonic() + 20s;
  Status greeted;
  do {
    greeted = Greet(worker_, worker_);
  } while (!greeted.ok() && RealClock().Monotonic() < deadline);
  EXPECT_EQ(greeted, OkStatus());
}

TEST_F(HostileStream, IsBrokenByAServerThatShutsDown) {
  const Holding& handler = Serve(holding_);
  StatusOr<OpenStream> stream = MakeSocketConnector()->Connect(address(), "echo", worker_, 20s);
  ASSERT_TRUE(stream.ok()) << stream.status();
  StatusOr<DataConnection> silent = Open(worker_);
  ASSERT_TRUE(silent.ok()) << silent.status();
  server_->Shutdown(100ms);
  IncomingFrame frame;
  EXPECT_EQ(stream->transport->Read(frame).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(IsClosed(silent->socket));
  EXPECT_EQ(handler.served, 1);
}

}  // namespace
}  // namespace tfjob::rpc
