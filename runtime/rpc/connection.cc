#include "runtime/rpc/connection.h"

#include <limits>
#include <system_error>
#include <utility>

#include "runtime/rpc/message_memory.h"

namespace tfjob::rpc {
namespace {

constexpr uint16_t kHeartbeat = 0xFF01;
constexpr uint16_t kCredit = 0xFF02;      // value: bytes consumed
constexpr uint16_t kUsesCredit = 0x8000;  // a flag of data frames
// The number of data frames that Flush writes. It leaves further frames to the writer.
constexpr int kFlushFrames = 4;

int64_t NowMicroseconds() {
  return RealClock().Monotonic().count();
}

}  // namespace

Connection::Connection(Transport& transport, ConnectionHandler& handler, ConnectionOptions options)
    : transport_(transport),
      handler_(handler),
      options_(options),
      last_heard_us_(NowMicroseconds()),
      credit_(options.window) {}

Connection::~Connection() = default;

// ---- reading

Status Connection::Run() {
  reader_ = Thread::CurrentId();
  Thread writer;
  try {
    writer = Thread("rpc-write", [this] { WriteLoop(); });
  } catch (const std::system_error& error) {
    Break(ResourceExhausted("no thread can be started: ", error.what()));
    return Why();
  }
  {
    MutexLock lock(mutex_);
    running_ = true;
  }
  ReadFrames();
  writer.Join();
  return Why();
}

Status Connection::Why() {
  MutexLock lock(mutex_);
  return why_;
}

void Connection::ReadFrames() {
  IncomingFrame frame;
  Status status;
  while (status.ok()) {
    status = transport_.BeginRead(frame);
    if (!status.ok() || cancelled_) break;  // in both cases, the peer may be dead
    last_heard_us_ = NowMicroseconds();
    handling_ = true;
    status = Handle(frame);
    // Set the time before clearing handling_, so that Silence never counts the handler's time.
    last_heard_us_ = NowMicroseconds();
    handling_ = false;
  }
  // Stop the writer. Break the stream, because the writer may be blocked in the transport. If
  // Cancel was called earlier, Break keeps its reason.
  Break(status);
}

Status Connection::TakeCredit(int64_t bytes) {
  MutexLock lock(mutex_);
  // The peer returns credit only for bytes that it has consumed, so the credit never exceeds the
  // window.
  if (bytes < 0 || bytes > options_.window - credit_) {
    return DataLoss("the peer returned credit for ", bytes, " bytes, but ",
                    options_.window - credit_, " are in flight");
  }
  credit_ += bytes;
  // Wake the writer only if data is waiting for the credit.
  if (data_waits_) wake_.NotifyOne();
  return OkStatus();
}

Status Connection::Handle(IncomingFrame& frame) {
  MessageMemory::Lease memory(MessageMemory::OfProcess());
  if (!handler_.TakesInPlace(frame.header)) {
    std::function<Status(size_t)> take;
    if (frame.remaining() > kSmallMessageBytes)
      take = [&](size_t more) { return memory.Take(more); };
    RETURN_IF_ERROR(frame.Load(take));
  }
  if (frame.header.type == kHeartbeat) return OkStatus();
  if (frame.header.type == kCredit) return TakeCredit(frame.header.value);
  const bool uses_credit = (frame.header.flags & kUsesCredit) != 0;
  frame.header.flags &= static_cast<uint16_t>(~kUsesCredit);
  // Compute the size before the call, because the handler consumes the frame.
  const auto bytes = static_cast<int64_t>(frame.remaining());
  handler_.OnFrame(frame);
  frame.Drop();
  if (!uses_credit) return OkStatus();
  MutexLock lock(mutex_);
  // Return credit once a quarter of a window is consumed, not for every frame.
  consumed_ += bytes;
  if (consumed_ > options_.window + static_cast<int64_t>(kMaxFrameBytes)) {
    return DataLoss("the peer sent ", consumed_, " bytes with a window of ", options_.window);
  }
  if (consumed_ >= options_.window / 4) wake_.NotifyOne();
  return OkStatus();
}

Duration Connection::Silence() const {
  // While the handler runs, count only the time for which it has been waiting for bytes of its
  // frame.
  if (handling_) return transport_.Waiting();
  return Duration(NowMicroseconds() - last_heard_us_);
}

// ---- requests to write

void Connection::Send(const FrameHeader& header, std::string body) {
  Status overflow;
  {
    MutexLock lock(mutex_);
    if (closing_) return;
    if (queued_bytes_ <= options_.max_queued_bytes &&
        messages_.size() < options_.max_queued_messages) {
      queued_bytes_ += body.size();
      messages_.emplace_back(header, std::move(body));
      // A writing thread checks for messages again before it releases the pen.
      if (!writing_) wake_.NotifyOne();
      return;
    }
    overflow = ResourceExhausted("the peer does not read: ", messages_.size(), " messages of ",
                                 queued_bytes_, " bytes wait for it");
  }
  Cancel(overflow);
}

bool Connection::Drained() {
  MutexLock lock(mutex_);
  return closing_ || (messages_.empty() && !data_waits_ && !writing_ && !rest_);
}

void Connection::Wake() {
  MutexLock lock(mutex_);
  data_waits_ = true;
  if (!writing_) wake_.NotifyOne();
}

void Connection::Flush() {
  {
    MutexLock lock(mutex_);
    data_waits_ = true;
    // A writing thread checks for data again before it releases the pen. If a frame was written
    // only in part, the writer has already been woken for the rest of the frame.
    if (writing_ || rest_ || closing_ || !running_) return;
    writing_ = true;
  }
  // While the reader thread writes, it cannot read. Count this time as silence from the peer, so
  // that the peer's lease expires if the network is blocked.
  const bool reads = handling_ && Thread::CurrentId() == reader_.load();
  if (reads) {
    last_heard_us_ = NowMicroseconds();
    handling_ = false;
  }
  Write(kFlushFrames, /*may_wait=*/false);
  if (reads) handling_ = true;
}

void Connection::Cancel(const Status& why) {
  cancelled_ = true;
  Break(why);
}

void Connection::Break(const Status& why) {
  {
    MutexLock lock(mutex_);
    if (!closing_) why_ = why;
    closing_ = true;
    wake_.NotifyOne();
  }
  transport_.Cancel();
}

// ---- writing

void Connection::WriteLoop() {
  while (AwaitPen()) Write(std::numeric_limits<int>::max(), /*may_wait=*/true);
}

bool Connection::AwaitPen() {
  MutexLock lock(mutex_);
  for (;;) {
    // Wait for the pen even when closing, because no other thread may be writing when Run returns.
    if (!writing_) {
      if (closing_) return false;
      if (HasWork()) {
        writing_ = true;
        return true;
      }
    }
    const bool in_time = wake_.WaitFor(mutex_, options_.heartbeat);
    heartbeat_due_ = heartbeat_due_ || !in_time;
  }
}

bool Connection::HasWork() const {
  return rest_ || heartbeat_due_ || consumed_ >= options_.window / 4 || !messages_.empty() ||
         (data_waits_ && credit_ > 0);
}

void Connection::LayDownPen() {
  writing_ = false;
  // Wake the writer for work that arrived while this thread was writing.
  if (closing_ || HasWork()) wake_.NotifyOne();
}

void Connection::Write(int frames, bool may_wait) {
  while (frames > 0) {
    Turn turn = Turn::kNothing;
    {
      MutexLock lock(mutex_);
      if (!closing_) turn = Next();
      if (turn == Turn::kNothing) return LayDownPen();
    }
    if (turn == Turn::kData) {
      if (!handler_.NextFrame(frame_)) continue;
      frame_.header.flags |= kUsesCredit;
      Spend(static_cast<int64_t>(PayloadBytes(frame_)));
      --frames;
    }
    const StatusOr<bool> written = WriteFrame(turn, may_wait);
    if (!written.ok()) Break(written.status());
    if (!written.ok() || !*written) break;
  }
  MutexLock lock(mutex_);
  LayDownPen();
}

StatusOr<bool> Connection::WriteFrame(Turn turn, bool may_wait) {
  if (turn == Turn::kRest) {
    RETURN_IF_ERROR(transport_.WriteRest());
    return true;
  }
  if (may_wait) {
    RETURN_IF_ERROR(transport_.Write(frame_));
    return true;
  }
  ASSIGN_OR_RETURN(const bool whole, transport_.TryWrite(frame_));
  if (whole) return true;
  // Leave the rest of the frame to the writer, because no other thread may wait for the network.
  MutexLock lock(mutex_);
  rest_ = true;
  return false;
}

void Connection::Spend(int64_t bytes) {
  MutexLock lock(mutex_);
  // The credit may become negative, because any positive credit permits a whole frame.
  credit_ -= bytes;
  // There may be more data after this frame.
  data_waits_ = true;
}

Connection::Turn Connection::Next() {
  // Write the rest of the frame first, because the transport still reads frame_ and body_.
  if (std::exchange(rest_, false)) return Turn::kRest;
  frame_.segments.clear();
  // Send credits first, because the peer may be waiting for them.
  if (consumed_ >= options_.window / 4) {
    frame_.header = {.type = kCredit, .value = consumed_};
    consumed_ = 0;
    return Turn::kFrame;
  }
  if (!messages_.empty()) {
    frame_.header = messages_.front().first;
    body_ = std::move(messages_.front().second);
    messages_.pop_front();
    queued_bytes_ -= body_.size();
    frame_.segments.push_back({.bytes = std::as_bytes(std::span(body_))});
    return Turn::kFrame;
  }
  if (data_waits_ && credit_ > 0) {
    // Clear the flag before NextFrame is called, so that a Wake during the call is not lost.
    data_waits_ = false;
    frame_.header = {};
    return Turn::kData;
  }
  if (heartbeat_due_) {
    heartbeat_due_ = false;
    frame_.header = {.type = kHeartbeat};
    return Turn::kFrame;
  }
  return Turn::kNothing;
}

}  // namespace tfjob::rpc
