#include "runtime/rpc/connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <thread>

#include "runtime/rpc/frame.h"
#include "runtime/rpc/peer_watch.h"
#include "runtime/rpc/pipe_connector.h"
#include "runtime/rpc/server.h"
#include "runtime/rpc/socket_connector.h"
#include "tests/sanitized.h"

namespace tfjob::rpc {
namespace {

Identity Task(const std::string& type, int index) {
  return {
      .job_uid = "job-a", .attempt = 1, .task_type = type, .task_index = index, .incarnation = 7};
}

// Records the events of handlers. Await waits up to 20 s for an entry.
class Seen {
 public:
  void Add(const std::string& what) {
    MutexLock lock(mutex_);
    seen_.push_back(what);
    changed_.NotifyAll();
  }
  bool Await(const std::string& what) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (std::find(seen_.begin(), seen_.end(), what) == seen_.end()) {
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> seen_ ABSL_GUARDED_BY(mutex_);
};

// Echoes every data frame, and answers every message with its text and an exclamation mark.
class EchoHandler : public StreamHandler {
 public:
  Status Admit(const Identity& peer) override {
    if (peer.task_index == 13) return FailedPrecondition("no task 13 here");
    return OkStatus();
  }

  void Serve(const Identity& peer, const std::string& address, Transport& transport) override {
    EXPECT_FALSE(address.empty());
    Echo echo;
    Connection connection(transport, echo, {.window = 1 << 20, .heartbeat = 50ms});
    echo.connection = &connection;
    EXPECT_FALSE(connection.Run().ok());
    seen.Add("left " + TaskName(peer));
  }

  Seen seen;

 private:
  struct Echo : ConnectionHandler {
    void OnFrame(IncomingFrame& frame) override {
      if (frame.header.type == 2) {
        connection->Send({.type = 2, .value = frame.header.value + 1},
                         frame.ReadString(frame.remaining()) + "!");
        return;
      }
      {
        MutexLock lock(mutex);
        waiting.push_back({frame.header, frame.segments, frame.ReadString(frame.remaining())});
      }
      connection->Wake();
    }
    bool NextFrame(OutgoingFrame& frame) override {
      MutexLock lock(mutex);
      if (waiting.empty()) return false;
      current = std::move(waiting.front());
      waiting.pop_front();
      frame.header = current.header;
      size_t offset = 0;
      for (const SegmentInfo& info : current.segments) {
        frame.segments.push_back(
            {.index = info.index,
             .flags = info.flags,
             .offset = info.offset,
             .bytes = std::as_bytes(std::span(current.bytes)).subspan(offset, info.length)});
        offset += info.length;
      }
      return true;
    }
    struct Item {
      FrameHeader header;
      std::vector<SegmentInfo> segments;
      std::string bytes;
    };
    Connection* connection = nullptr;
    Mutex mutex;
    std::deque<Item> waiting ABSL_GUARDED_BY(mutex);
    Item current;
  };
};

// Sends `frames` frames, each with two segments that refer to its own memory, and checks
// the echoes.
struct Client : ConnectionHandler {
  Client(int frames, size_t bytes) : total(frames), data(bytes), back(bytes) {
    std::iota(data.begin(), data.end(), 0);
  }
  void OnFrame(IncomingFrame& frame) override {
    if (frame.header.type == 2) {
      seen.Add(frame.ReadString(frame.remaining()));
      return;
    }
    ASSERT_EQ(frame.segments.size(), 2u);
    EXPECT_EQ(frame.segments[1].offset, 3u);
    EXPECT_EQ(frame.header.sequence, static_cast<uint64_t>(received));
    frame.Skip(frame.segments[0].length);
    frame.Read(std::as_writable_bytes(std::span(back)));
    EXPECT_EQ(back, data);
    if (++received == total) seen.Add("all");
  }
  bool NextFrame(OutgoingFrame& frame) override {
    if (sent == total) return false;
    frame.header = {.type = 1, .sequence = static_cast<uint64_t>(sent++)};
    auto released = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
    frame.segments.push_back({.bytes = std::as_bytes(std::span(data)).first(5),
                              .release = released,
                              .argument = &releases});
    frame.segments.push_back({.index = 4,
                              .offset = 3,
                              .bytes = std::as_bytes(std::span(data)),
                              .release = released,
                              .argument = &releases});
    return true;
  }
  const int total;
  std::vector<uint8_t> data, back;
  int sent = 0, received = 0;
  std::atomic<int> releases = 0;
  Seen seen;
};

void ExchangeBothWays(Connector& connector, const std::string& address, EchoHandler& handler) {
  StatusOr<OpenStream> stream = connector.Connect(address, "echo", Task("worker", 1), 10s);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ(stream->peer, Task("ps", 0));
  Client client(40, 300'000);  // 12 MB through a window of 1 MiB, in both directions at once
  {
    Connection connection(*stream->transport, client, {.window = 1 << 20, .heartbeat = 50ms});
    std::thread reader([&] { EXPECT_FALSE(connection.Run().ok()); });
    connection.Wake();
    connection.Send({.type = 2, .value = 1}, "hello");
    EXPECT_TRUE(client.seen.Await("hello!"));
    EXPECT_TRUE(client.seen.Await("all"));
    EXPECT_LT(connection.Silence(), 10s);
    connection.Cancel(Cancelled("done"));
    reader.join();
  }
  stream->transport.reset();
  EXPECT_TRUE(handler.seen.Await("left worker 1"));
  EXPECT_EQ(client.releases, 80);
}

TEST(PipeConnector, CarriesFramesBothWaysUnderCredits) {
  EchoHandler handler;
  PipeConnector connector;
  connector.Listen("here", "echo", Task("ps", 0), handler);
  ExchangeBothWays(connector, "here", handler);
  EXPECT_EQ(connector.Connect("there", "echo", Task("worker", 0), 1s).status().code(),
            StatusCode::kUnavailable);
}

class SocketTest : public testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Server>> server = Server::Start(
        {.host = "127.0.0.1", .identity = Task("ps", 0), .streams = {{"echo", &handler_}}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    address_ = StrCat("127.0.0.1:", server_->port());
  }
  Status Refusal(const Identity& self, const std::string& service = "echo") {
    return connector_->Connect(address_, service, self, 10s).status();
  }

  EchoHandler handler_;
  std::unique_ptr<Server> server_;
  std::string address_;
  std::unique_ptr<Connector> connector_ = MakeSocketConnector();
};

TEST_F(SocketTest, CarriesFramesBothWaysUnderCredits) {
  ExchangeBothWays(*connector_, address_, handler_);
}

TEST(Identity, TasksOfDifferentRunsWaitForEachOther) {
  Identity later = Task("worker", 0);
  EXPECT_EQ(CheckPeer(Task("ps", 0), later, kProtocolVersion), OkStatus());
  later.run = 1;
  EXPECT_EQ(CheckPeer(Task("ps", 0), later, kProtocolVersion),
            Unavailable("ps 0 takes part in run 0 of the job, and worker 0 in run 1"));
}

TEST_F(SocketTest, RefusesWhoDoesNotBelongHere) {
  Identity other_job = Task("worker", 0), other_attempt = Task("worker", 0);
  other_job.job_uid = "job-b";
  other_attempt.attempt = 2;
  EXPECT_EQ(Message(Refusal(other_job)),
            address_ +
                ": refused: this is ps 0 of job 'job-a' attempt 1, protocol 3, the caller is "
                "worker 0 of job 'job-b' attempt 1, protocol 3: another job's task has this "
                "address; give the jobs different ports");
  EXPECT_EQ(Refusal(other_attempt).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(Refusal(Task("worker", 13))), address_ + ": no task 13 here");
  EXPECT_EQ(Refusal(Task("worker", 0), "ehco").code(), StatusCode::kUnimplemented);
}

TEST(SocketWithAKey, ConnectsOnlyTasksThatHaveIt) {
  const auto credentials = [](char digit) {
    return Credentials{.key = *wire::JobKey::Parse(std::string(64, digit))};
  };
  EchoHandler handler;
  auto server = *Server::Start({.host = "127.0.0.1",
                                .identity = Task("ps", 0),
                                .credentials = credentials('a'),
                                .streams = {{"echo", &handler}}});
  const std::string address = StrCat("127.0.0.1:", server->port());
  ExchangeBothWays(*MakeSocketConnector(credentials('a')), address, handler);
  const auto refusal = [&](const Credentials& other) {
    return MakeSocketConnector(other)->Connect(address, "echo", Task("worker", 1), 10s).status();
  };
  EXPECT_EQ(refusal(credentials('b')),
            FailedPrecondition(address,
                               ": refused: the task has another job key: either another job's task "
                               "has this address, or TFJOB_KEY differs between the tasks of the "
                               "job"));
  EXPECT_EQ(refusal({}).code(), StatusCode::kFailedPrecondition);
}

TEST_F(SocketTest, EndsAStreamThatSendsMoreThanAFrameMayHold) {
  StatusOr<OpenStream> stream = connector_->Connect(address_, "echo", Task("worker", 2), 10s);
  ASSERT_TRUE(stream.ok()) << stream.status();
  const std::string large(kMaxFrameBytes, 'x');
  const Duration begin = RealClock().Monotonic();
  // The server need not read more than the header, but this side must not wait forever for buffer
  // space.
  (void)stream->transport->Write(
      {.header = {.type = 1}, .segments = {{.bytes = std::as_bytes(std::span(large))}}});
  EXPECT_TRUE(handler_.seen.Await("left worker 2"));
  EXPECT_LT(RealClock().Monotonic() - begin, 10s);
  stream->transport->Cancel();
}

TEST_F(SocketTest, NamesThePortThatIsTaken) {
  Status status =
      Server::Start({.host = "127.0.0.1", .port = server_->port(), .identity = Task("ps", 1)})
          .status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(Message(status),
            address_ +
                ": the port is taken by another process; stop it (ss -ltnp shows it) or give "
                "this task another port in TF_CONFIG");
  EXPECT_EQ(Server::Start({.host = "192.0.2.1", .port = 2222}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(SocketTest, KnowsWithinTwoSecondsThatThePeerIsGone) {
  StatusOr<OpenStream> stream = connector_->Connect(address_, "echo", Task("worker", 1), 10s);
  ASSERT_TRUE(stream.ok()) << stream.status();
  Client client(0, 0);
  Connection connection(*stream->transport, client);
  std::thread killer([&] { server_.reset(); });
  const Duration begin = RealClock().Monotonic();
  EXPECT_EQ(connection.Run().code(), StatusCode::kUnavailable);
  EXPECT_LT(RealClock().Monotonic() - begin, 2s);
  killer.join();
  EXPECT_EQ(connector_->Connect(address_, "echo", Task("worker", 1), 300ms).status().code(),
            StatusCode::kUnavailable);
}

// Simulates a stopped peer: its stream exists, but it sends nothing.
class SilentHandler : public StreamHandler {
 public:
  Status Admit(const Identity&) override { return OkStatus(); }
  void Serve(const Identity&, const std::string&, Transport& transport) override {
    MutexLock lock(mutex_);
    while (silent_) changed_.Wait(mutex_);
    transport.Cancel();
  }
  void End() {
    MutexLock lock(mutex_);
    silent_ = false;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool silent_ ABSL_GUARDED_BY(mutex_) = true;
};

TEST(PeerWatch, NamesTheSilentPeerAndEndsItsLease) {
  SilentHandler handler;
  PipeConnector connector;
  connector.Listen("here", "silent", Task("ps", 0), handler);
  StatusOr<OpenStream> stream = connector.Connect("here", "silent", Task("worker", 0), 10s);
  ASSERT_TRUE(stream.ok()) << stream.status();
  Client client(0, 0);
  Connection connection(*stream->transport, client);
  std::atomic<int> suspected = 0;
  constexpr Duration kLease = 400ms * kSlowdown;
  PeerWatch watch(nullptr, {.suspect_after = 80ms, .lease = kLease});
  const auto ticket = watch.Add({.connection = &connection,
                                 .peer = "ps 0 (here)",
                                 .on_change = [&](Health health, Duration silence) {
                                   EXPECT_EQ(health, Health::kSuspected);
                                   EXPECT_LT(silence, kLease);
                                   ++suspected;
                                 }});
  const Status why = connection.Run();
  EXPECT_EQ(why.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(Message(why).starts_with("ps 0 (here) gave no sign of life for ")) << why;
  EXPECT_EQ(suspected, 1);
  watch.Remove(ticket);
  handler.End();
}

TEST(PeerWatch, LeavesAnIdlePeerAlone) {
  EchoHandler handler;
  PipeConnector connector;
  connector.Listen("here", "echo", Task("ps", 0), handler);
  StatusOr<OpenStream> stream = connector.Connect("here", "echo", Task("worker", 0), 10s);
  ASSERT_TRUE(stream.ok()) << stream.status();
  Client client(0, 0);
  Connection connection(*stream->transport, client, {.heartbeat = 50ms});
  PeerWatch watch(nullptr, {.suspect_after = 500ms * kSlowdown, .lease = 600ms * kSlowdown});
  const auto ticket = watch.Add({.connection = &connection, .peer = "ps 0", .on_change = nullptr});
  std::thread reader([&] { EXPECT_EQ(connection.Run().code(), StatusCode::kCancelled); });
  // Wait for longer than the lease.
  CondVar never;
  Mutex mutex;
  {
    MutexLock lock(mutex);
    const auto end = std::chrono::steady_clock::now() + 1s * kSlowdown;
    while (never.WaitUntil(mutex, end)) {
    }
  }
  watch.Remove(ticket);
  connection.Cancel(Cancelled("done"));
  reader.join();
}

// Records frames that are written, then discards them. Writes block while `held` is true.
class NowhereTransport : public Transport {
 public:
  Status Write(const OutgoingFrame& frame) override {
    MutexLock lock(mutex_);
    writers.push_back(std::this_thread::get_id());
    types.push_back(frame.header.type);
    changed_.NotifyAll();
    while (held && !cancelled_) changed_.Wait(mutex_);
    return cancelled_ ? Unavailable("cancelled") : OkStatus();
  }
  // Returns one frame, then blocks.
  Status Read(IncomingFrame& frame) override {
    MutexLock lock(mutex_);
    while (read_ && !cancelled_) changed_.Wait(mutex_);
    if (cancelled_) return Unavailable("cancelled");
    read_ = true;
    wire_.clear();
    AppendPrefix({.header = {.type = 1}, .segments = {}}, wire_);
    frame.pieces = {std::as_bytes(std::span(wire_))};
    return frame.Parse();
  }
  void Cancel() override {
    MutexLock lock(mutex_);
    cancelled_ = true;
    changed_.NotifyAll();
  }
  bool AwaitWrites(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    MutexLock lock(mutex_);
    while (types.size() < count) {
      if (!changed_.WaitUntil(mutex_, deadline)) return false;
    }
    return true;
  }
  std::vector<std::thread::id> writers;
  std::vector<uint16_t> types;
  bool held = false;

 private:
  Mutex mutex_;
  CondVar changed_;
  std::string wire_;
  bool read_ = false;
  bool cancelled_ = false;
};

// Provides `frames` data frames.
struct Source : ConnectionHandler {
  void OnFrame(IncomingFrame&) override {
    if (on_frame) on_frame();
    seen.Add("frame");
  }
  bool NextFrame(OutgoingFrame& frame) override {
    if (frames == 0) return false;
    --frames;
    frame.header = {.type = 7};
    return true;
  }
  std::atomic<int> frames = 0;
  std::function<void()> on_frame;
  Seen seen;
};

TEST(Connection, FlushWritesFromTheCallingThread) {
  NowhereTransport transport;
  Source source;
  Connection connection(transport, source, {.heartbeat = 10s});
  std::thread reader([&] { EXPECT_EQ(connection.Run().code(), StatusCode::kCancelled); });
  ASSERT_TRUE(source.seen.Await("frame"));
  source.frames = 2;
  connection.Flush();
  EXPECT_EQ(transport.types, (std::vector<uint16_t>{7, 7}));
  EXPECT_EQ(transport.writers, (std::vector<std::thread::id>(2, std::this_thread::get_id())));
  EXPECT_TRUE(connection.Drained());
  // If there are many frames, Flush writes only the first few.
  source.frames = 50;
  connection.Flush();
  EXPECT_TRUE(transport.AwaitWrites(52));
  connection.Cancel(Cancelled("done"));
  reader.join();
  EXPECT_NE(transport.writers.back(), std::this_thread::get_id());
}

TEST(Connection, AReaderThatWritesIntoADeadNetworkHearsSilence) {
  NowhereTransport transport;
  transport.held = true;
  Source source;
  source.frames = 1;
  Connection connection(transport, source, {.heartbeat = 10s});
  source.on_frame = [&] { connection.Flush(); };
  PeerWatch watch(nullptr, {.suspect_after = 80ms, .lease = 300ms});
  const auto ticket =
      watch.Add({.connection = &connection, .peer = "ps 0 (here)", .on_change = nullptr});
  const Status why = connection.Run();
  EXPECT_TRUE(Message(why).starts_with("ps 0 (here) gave no sign of life for ")) << why;
  watch.Remove(ticket);
}

TEST(Frame, RefusesBytesThatAreNoFrame) {
  OutgoingFrame out{.header = {.type = 3}, .segments = {{.bytes = {}}, {.bytes = {}}}};
  std::string wire;
  AppendPrefix(out, wire);
  for (size_t length = 0; length < wire.size(); ++length) {
    IncomingFrame in;
    in.pieces = {std::as_bytes(std::span(wire).first(length))};
    EXPECT_EQ(in.Parse().code(), StatusCode::kDataLoss) << length;
  }
  IncomingFrame in;
  in.pieces = {std::as_bytes(std::span(wire))};
  EXPECT_TRUE(in.Parse().ok());
  wire[kHeaderBytes + 23] = '\x7f';  // a segment of almost 2^63 bytes
  in.pieces = {std::as_bytes(std::span(wire))};
  EXPECT_EQ(in.Parse().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tfjob::rpc
