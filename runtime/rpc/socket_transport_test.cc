#include "runtime/rpc/socket_transport.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include "runtime/base/thread.h"
#include "tests/sanitized.h"

namespace tfjob::rpc {
namespace {

struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    far_end = ends[1];
    near = std::make_unique<SocketTransport>(wire::UniqueFd(ends[0]));
    far = std::make_unique<SocketTransport>(wire::UniqueFd(ends[1]));
  }
  // Sends bytes that need not be frames.
  void Say(std::string_view bytes) const {
    EXPECT_EQ(send(far_end, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  int far_end = -1;
  std::unique_ptr<SocketTransport> near, far;
};

std::vector<std::byte> Pattern(size_t bytes, uint8_t first = 0) {
  std::vector<uint8_t> numbers(bytes);
  std::iota(numbers.begin(), numbers.end(), first);
  const auto view = std::as_bytes(std::span(numbers));
  return {view.begin(), view.end()};
}

struct Release {
  std::atomic<int> count = 0;
  static void Call(void* self) { ++static_cast<Release*>(self)->count; }
};

// Returns a frame that refers to `payloads`, with one segment per payload.
OutgoingFrame FrameOf(uint64_t sequence, const std::vector<std::vector<std::byte>>& payloads,
                      Release* release = nullptr) {
  OutgoingFrame frame{.header = {.type = 7, .sequence = sequence, .step = -3}, .segments = {}};
  for (const auto& payload : payloads) {
    frame.segments.push_back({.index = static_cast<uint32_t>(frame.segments.size()),
                              .offset = 5,
                              .bytes = payload,
                              .release = release == nullptr ? nullptr : Release::Call,
                              .argument = release});
  }
  return frame;
}

// The way in which a test receives frames.
enum class Taking { kLoaded, kInPlace, kMixed, kHalf };

void ExpectFrame(IncomingFrame& frame, const std::vector<std::vector<std::byte>>& payloads,
                 Taking taking) {
  ASSERT_EQ(frame.segments.size(), payloads.size());
  if (taking == Taking::kLoaded) ASSERT_EQ(frame.Load(), OkStatus());
  for (size_t i = 0; i < payloads.size(); ++i) {
    if (taking == Taking::kHalf && i >= payloads.size() / 2) return;
    if (taking == Taking::kMixed && i == payloads.size() / 2) ASSERT_EQ(frame.Load(), OkStatus());
    EXPECT_EQ(frame.segments[i].index, i);
    EXPECT_EQ(frame.segments[i].length, payloads[i].size());
    std::vector<std::byte> got(payloads[i].size());
    ASSERT_EQ(frame.Receive(got), OkStatus());
    ASSERT_TRUE(got == payloads[i]) << i;
  }
  EXPECT_EQ(frame.remaining(), 0u);
}

// Returns the payloads of frames whose sizes are around the limits at which the transport changes
// how it moves bytes, and of frames with many segments.
std::vector<std::vector<std::vector<std::byte>>> ManyFrames() {
  std::vector<std::vector<std::vector<std::byte>>> frames;
  for (const size_t size : {0, 1, 100, 4096, 4097, 16'383, 16'384, 65'536, 70'000, 3'000'000}) {
    frames.push_back({Pattern(size)});
    frames.push_back({Pattern(3, 1), Pattern(size, 2), {}, Pattern(200, 3)});
  }
  frames.push_back({});
  // More segments than one call can send, with a table that exceeds the buffer.
  frames.push_back(std::vector(5000, Pattern(300)));
  frames.push_back({});
  return frames;
}

class EveryTaking : public testing::TestWithParam<Taking> {};

TEST_P(EveryTaking, CarriesFramesOfAnySize) {
  Pair pair;
  const auto frames = ManyFrames();
  Release release;
  Thread writer("writer", [&] {
    for (size_t i = 0; i < frames.size(); ++i) {
      EXPECT_EQ(pair.far->Write(FrameOf(i, frames[i], &release)), OkStatus());
    }
  });
  IncomingFrame frame;
  for (size_t i = 0; i < frames.size(); ++i) {
    ASSERT_EQ(pair.near->BeginRead(frame), OkStatus());
    EXPECT_EQ(frame.header, (FrameHeader{.type = 7, .sequence = i, .step = -3}));
    ExpectFrame(frame, frames[i], GetParam());
    if (HasFatalFailure()) break;
  }
  pair.near->Cancel();
  writer.Join();
  size_t segments = 0;
  for (const auto& payloads : frames) segments += payloads.size();
  EXPECT_EQ(release.count, static_cast<int>(segments));
}

INSTANTIATE_TEST_SUITE_P(, EveryTaking,
                         testing::Values(Taking::kLoaded, Taking::kInPlace, Taking::kMixed,
                                         Taking::kHalf));

TEST(SocketTransport, LeavesTheRestOfAFrameThatTheSocketDoesNotTake) {
  Pair pair;
  const std::vector<std::vector<std::byte>> large = {Pattern(8 << 20)}, small = {Pattern(10)};
  Release release;
  ASSERT_EQ(*pair.far->TryWrite(FrameOf(0, small, &release)), true);
  EXPECT_EQ(release.count, 1);
  ASSERT_EQ(*pair.far->TryWrite(FrameOf(1, large, &release)), false);
  EXPECT_EQ(release.count, 1) << "the socket holds no 8 MiB";
  Thread writer("writer", [&] {
    EXPECT_EQ(pair.far->WriteRest(), OkStatus());
    EXPECT_EQ(pair.far->Write(FrameOf(2, small, &release)), OkStatus());
  });
  IncomingFrame frame;
  for (const auto* payloads : {&small, &large, &small}) {
    ASSERT_EQ(pair.near->Read(frame), OkStatus());
    ExpectFrame(frame, *payloads, Taking::kLoaded);
  }
  writer.Join();
  EXPECT_EQ(release.count, 3);
}

TEST(SocketTransport, ReleasesWhatItCannotSend) {
  Pair pair;
  const std::vector<std::vector<std::byte>> large = {Pattern(8 << 20)};
  Release release;
  ASSERT_EQ(*pair.far->TryWrite(FrameOf(0, large, &release)), false);
  pair.near.reset();
  EXPECT_EQ(pair.far->WriteRest(), Unavailable("the connection is closed"));
  EXPECT_EQ(release.count, 1);
  EXPECT_EQ(pair.far->Write(FrameOf(0, large, &release)).code(), StatusCode::kUnavailable);
  EXPECT_EQ(release.count, 2);
  Pair other;
  ASSERT_EQ(*other.far->TryWrite(FrameOf(0, large, &release)), false);
  other.far.reset();
  EXPECT_EQ(release.count, 3);
}

TEST(SocketTransport, CancelWakesTheReaderAndTheWriter) {
  Pair pair;
  const std::vector<std::vector<std::byte>> large = {Pattern(8 << 20)};
  Thread writer("writer", [&] {
    EXPECT_EQ(pair.near->Write(FrameOf(0, large)), Unavailable("the connection is closed"));
  });
  Thread reader("reader", [&] {
    IncomingFrame frame;
    EXPECT_EQ(pair.near->Read(frame), Unavailable("the connection is closed"));
  });
  // Start to read only once the writer has filled the socket's buffer.
  IncomingFrame frame;
  ASSERT_EQ(pair.far->BeginRead(frame), OkStatus());
  pair.near->Cancel();
  writer.Join();
  reader.Join();
}

// Returns the bytes of a frame.
std::string Bytes(const OutgoingFrame& frame) {
  std::string bytes;
  AppendPrefix(frame, bytes);
  for (const Segment& segment : frame.segments) {
    bytes.append(reinterpret_cast<const char*>(segment.bytes.data()), segment.bytes.size());
  }
  return bytes;
}

TEST(SocketTransport, NeverCompletesAFrameThatBreaksOff) {
  const std::vector<std::vector<std::byte>> payloads = {Pattern(100), Pattern(100'000)};
  const std::string whole = Bytes(FrameOf(0, payloads));
  for (const size_t length : {size_t{0}, size_t{1}, kHeaderBytes, kHeaderBytes + 10, size_t{100},
                              size_t{50'000}, whole.size() - 1}) {
    for (const bool in_place : {false, true}) {
      Pair pair;
      pair.Say(whole.substr(0, length));
      pair.far.reset();
      IncomingFrame frame;
      Status status = in_place ? pair.near->BeginRead(frame) : pair.near->Read(frame);
      std::vector<std::byte> got(100'100);
      if (in_place && status.ok()) status = frame.Receive(got);
      EXPECT_EQ(status, Unavailable("the connection is closed")) << length;
      EXPECT_EQ(pair.near->BeginRead(frame).code(), StatusCode::kUnavailable) << length;
    }
  }
}

TEST(SocketTransport, TellsHowLongItHasWaitedForTheRestOfAFrame) {
  Pair pair;
  const std::vector<std::vector<std::byte>> payloads = {Pattern(100'000)};
  pair.Say(Bytes(FrameOf(0, payloads)).substr(0, 50'000));
  IncomingFrame frame;
  ASSERT_EQ(pair.near->BeginRead(frame), OkStatus());
  EXPECT_EQ(pair.near->Waiting(), Duration(0));
  Thread reader("reader", [&] {
    std::vector<std::byte> got(100'000);
    EXPECT_EQ(frame.Receive(got).code(), StatusCode::kUnavailable);
  });
  const auto deadline = SteadyNow() + 20s * kSlowdown;
  while (pair.near->Waiting() < 50ms && SteadyNow() < deadline) {
  }
  EXPECT_GE(pair.near->Waiting(), 50ms);
  pair.near->Cancel();
  reader.Join();
  EXPECT_EQ(pair.near->Waiting(), Duration(0));
}

TEST(SocketTransport, EndsAHandshakeAtItsDeadline) {
  Pair pair;
  pair.near->BeginHandshake(50ms);
  pair.Say(std::string(10, '\0'));  // less than a header
  IncomingFrame frame;
  EXPECT_EQ(pair.near->BeginRead(frame), DeadlineExceeded("no answer to the handshake"));
}

TEST(SocketTransport, TakesOneSegmentInAHandshakeAndManyAfterIt) {
  const std::vector<std::vector<std::byte>> two(2, Pattern(3));
  for (const bool ended : {false, true}) {
    Pair pair;
    pair.near->BeginHandshake(20s);
    if (ended) pair.near->EndHandshake();
    ASSERT_EQ(pair.far->Write(FrameOf(1, two)), OkStatus());
    IncomingFrame frame;
    EXPECT_EQ(pair.near->BeginRead(frame),
              ended ? OkStatus() : DataLoss("a handshake of 2 segments"));
  }
}

// Returns the header of a frame, with a table that announces `lengths`.
std::string Announcing(const std::vector<uint64_t>& lengths) {
  std::string bytes;
  AppendPrefix({.header = {.type = 1}, .segments = std::vector<Segment>(lengths.size())}, bytes);
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (int byte = 0; byte < 8; ++byte) {
      bytes[kHeaderBytes + i * kSegmentBytes + 16 + static_cast<size_t>(byte)] =
          static_cast<char>(lengths[i] >> (8 * byte));
    }
  }
  return bytes;
}

TEST(SocketTransport, RefusesFramesThatAreTooLarge) {
  const std::vector<std::vector<uint64_t>> tables = {
      {~uint64_t{0}},
      {kMaxFrameBytes},
      {kMaxFrameBytes - kHeaderBytes - kSegmentBytes + 1},
      {~uint64_t{0}, 1},
      std::vector<uint64_t>(3000, kMaxFrameBytes / 2),
  };
  for (const auto& table : tables) {
    Pair pair;
    pair.Say(Announcing(table));
    IncomingFrame frame;
    EXPECT_EQ(pair.near->BeginRead(frame).code(), StatusCode::kDataLoss) << table[0];
  }
  Pair pair;
  std::string header = Announcing({});
  header[6] = '\x01';  // 65537 segments
  header[4] = '\x01';
  pair.Say(header);
  IncomingFrame frame;
  EXPECT_EQ(pair.near->BeginRead(frame), DataLoss("a frame of 65537 segments"));
}

TEST(SocketTransport, TakesTheLargestFrameThatIsPossible) {
  Pair pair;
  pair.Say(Announcing({kMaxFrameBytes - kHeaderBytes - kSegmentBytes}));
  IncomingFrame frame;
  EXPECT_EQ(pair.near->BeginRead(frame), OkStatus());
  pair.far.reset();
  // The payload does not arrive, so loading it must fail.
  EXPECT_EQ(frame.Load().code(), StatusCode::kUnavailable);
}

TEST(SocketTransport, SurvivesRandomBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Pair pair;
    std::string bytes = Bytes(FrameOf(1, {Pattern(random() % 3000), Pattern(random() % 3000)}));
    for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    pair.Say(bytes);
    pair.far.reset();
    IncomingFrame frame;
    Status status;
    while (status.ok()) {
      status = pair.near->BeginRead(frame);
      if (!status.ok()) break;
      std::vector<std::byte> some(std::min<size_t>(frame.remaining(), random() % 5000));
      status = frame.Receive(some);
      if (status.ok() && random() % 2 == 0) status = frame.Load();
    }
    EXPECT_TRUE(status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kDataLoss)
        << status;
  }
}

// Each arriving byte must end the silence. Otherwise, a peer behind a slow network would be
// considered silent while its payload arrives.
TEST(SocketTransport, BytesThatArriveSlowlyEndTheSilence) {
  constexpr size_t kPayload = size_t{1} << 20, kPiece = size_t{64} << 10;
  Pair pair;
  std::string prefix;
  const std::vector<std::byte> payload = Pattern(kPayload);
  AppendPrefix(FrameOf(1, {payload}), prefix);
  pair.Say(prefix);
  Thread reader("reader", [&] {
    IncomingFrame frame;
    EXPECT_EQ(pair.near->BeginRead(frame), OkStatus());
    std::vector<std::byte> got(kPayload);
    EXPECT_TRUE(absl::IsUnavailable(frame.Receive(got)));
  });
  const auto waits_for = [&](bool longer, Duration time) {
    const SteadyTime end = SteadyNow() + 20s;
    while (SteadyNow() < end && (pair.near->Waiting() > time) != longer) {
      std::this_thread::sleep_for(1ms);
    }
    return (pair.near->Waiting() > time) == longer;
  };
  for (int piece = 0; piece < 3; ++piece) {
    EXPECT_TRUE(waits_for(true, 500ms));
    pair.Say({reinterpret_cast<const char*>(payload.data()), kPiece});
    EXPECT_TRUE(waits_for(false, 400ms)) << piece;
  }
  pair.far->Cancel();
  reader.Join();
}

}  // namespace
}  // namespace tfjob::rpc
