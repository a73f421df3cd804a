// Checks how a training task handles arbitrary answers from a parameter server. An input is a
// sequence of frames, each preceded by its length (u16, little-endian). The client joins, takes a
// step and copies the state, and each frame answers the next request. The number 0xFFFF in a frame
// is replaced with the number of that request. After the last frame, the test reports to the client
// that the job is over, and closes the connection.
//   - Nothing crashes, and no byte is written outside the caller's memory.
//   - A result that is accepted has a position that is not negative.
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/mutex.h"
#include "runtime/ps/client/client.h"
#include "runtime/ps/wire.h"

namespace tfjob::fuzz {
namespace {

constexpr uint64_t kOfTheRequest = 0xFFFF;
constexpr Duration kNextRequest{2ms};

// The server's end of a stream. Waits for a request only for a limited time, because frames for
// which there is no request must be delivered, too.
class Answers : public rpc::Transport {
 public:
  explicit Answers(std::vector<std::string_view> frames) : frames_(std::move(frames)) {}

  Status Write(const rpc::OutgoingFrame& frame) override {
    for (const rpc::Segment& segment : frame.segments) {
      if (segment.release != nullptr) segment.release(segment.argument);
    }
    if (frame.header.type >= 0xFF00) return OkStatus();
    MutexLock lock(mutex_);
    ++requests_;
    sequence_ = frame.header.sequence;
    changed_.NotifyAll();
    return OkStatus();
  }
  Status Read(rpc::IncomingFrame& frame) override {
    if (next_ == frames_.size()) return Unavailable("the end");
    // Copy the bytes, so that a sanitizer detects reads beyond their end.
    bytes_.assign(frames_[next_].begin(), frames_[next_].end());
    ++next_;
    const uint64_t request = AwaitRequest();
    frame.pieces = {std::as_bytes(std::span(bytes_))};
    RETURN_IF_ERROR(frame.Parse());
    if (frame.header.sequence == kOfTheRequest) frame.header.sequence = request;
    return OkStatus();
  }
  void Cancel() override {
    MutexLock lock(mutex_);
    next_ = frames_.size();
    changed_.NotifyAll();
  }

 private:
  uint64_t AwaitRequest() {
    const auto deadline = SteadyNow() + kNextRequest;
    MutexLock lock(mutex_);
    while (requests_ == answered_ && changed_.WaitUntil(mutex_, deadline)) {
    }
    answered_ = requests_;
    return sequence_;
  }

  const std::vector<std::string_view> frames_;
  std::atomic<size_t> next_ = 0;
  std::vector<char> bytes_;
  Mutex mutex_;
  CondVar changed_;
  int requests_ ABSL_GUARDED_BY(mutex_) = 0, answered_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Connects to the server only once.
class OneServer : public rpc::Connector {
 public:
  explicit OneServer(std::vector<std::string_view> frames) : frames_(std::move(frames)) {}
  StatusOr<rpc::OpenStream> Connect(const std::string&, const std::string&, const rpc::Identity&,
                                    Duration) override {
    if (connected_) return FailedPrecondition("the server is gone");
    connected_ = true;
    return rpc::OpenStream{std::make_unique<Answers>(frames_),
                           {.task_type = "ps", .incarnation = 1}};
  }

 private:
  const std::vector<std::string_view> frames_;
  bool connected_ = false;
};

// Returns a frame that tells the client that the job is over. The frame ends all waits of the
// client.
const std::string& Finished() {
  static const std::string* const frame = [] {
    auto* made = new std::string;
    rpc::AppendPrefix({.header = {.type = ps::wire::kFinished}, .segments = {}}, *made);
    return made;
  }();
  return *frame;
}

std::vector<std::string_view> Split(std::string_view bytes) {
  std::vector<std::string_view> frames;
  while (bytes.size() >= 2) {
    const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    const size_t length = std::min<size_t>(at(0) | at(1) << 8, bytes.size() - 2);
    frames.push_back(bytes.substr(2, length));
    bytes.remove_prefix(2 + length);
  }
  frames.push_back(Finished());
  return frames;
}

void CheckResult(const StatusOr<ps::StepResult>& result) {
  if (!result.ok()) return;
  ENFORCE(result->drawn >= 0, "positions are counted from 0");
}

void Run(ps::Mode mode, std::string_view bytes) {
  ps::Definition definition;
  definition.state.variables = {{.name = "w", .shape = {2, 3}}, {.name = "b", .shape = {1}}};
  definition.mode = mode;
  OneServer server(Split(bytes));
  auto client = ps::ParameterClient::Create({
      .servers = {"here"},
      .identity = {.task_type = "worker", .incarnation = 1},
      .definition = definition,
      .patience = 1s,
      .stop_requested = [] { return true; },
      .stop_patience = Duration(0),
      .refusal_patience = Duration(0),
      .connector = &server,
  });
  ENFORCE(client.ok(), "the client is made without a server");
  // The buffers have exactly the size of the values, so sanitizers detect writes beyond them.
  std::vector<std::byte> w(24), b(4);
  const std::vector<std::span<std::byte>> values = {w, b};
  const std::vector<std::span<const std::byte>> gradients = {w, b};
  const StatusOr<ps::StepResult> joined = (*client)->WaitReady(values);
  CheckResult(joined);
  if (!joined.ok()) return;
  CheckResult((*client)->Exchange(gradients, values, 1));
  (void)(*client)->Peers();
  const auto snapshot = (*client)->TakeSnapshot();
  ENFORCE(!snapshot.ok() || snapshot->variables.size() == 2, "a copy is of all variables");
}

}  // namespace
}  // namespace tfjob::fuzz

// The first byte of an input selects the mode: asynchronous (a) or synchronous (s).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tfjob;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'a') fuzz::Run(ps::Mode::kAsynchronous, rest);
  if (data[0] == 's') fuzz::Run(ps::Mode::kSynchronous, rest);
  return 0;
}
