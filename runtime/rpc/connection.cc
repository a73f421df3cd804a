#include "runtime/rpc/connection.h"

#include <thread>

#include "runtime/base/thread_pool.h"

namespace tfjob::rpc {
namespace {

constexpr uint16_t kHeartbeat = 0xFF01;
constexpr uint16_t kCredit = 0xFF02;      // value: bytes consumed
constexpr uint16_t kUsesCredit = 0x8000;  // a flag of data frames

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

Status Connection::Run() {
  std::thread writer([this] {
    SetThreadName("rpc-write");
    WriteLoop();
  });
  IncomingFrame frame;
  Status status;
  while (status.ok()) {
    status = transport_.Read(frame);
    last_heard_us_ = NowMicroseconds();
    if (!status.ok()) break;
    handling_ = true;
    Handle(frame);
    last_heard_us_ = NowMicroseconds();
    handling_ = false;
  }
  Cancel(status);
  writer.join();
  MutexLock lock(mutex_);
  return why_;
}

void Connection::Handle(IncomingFrame& frame) {
  if (frame.header.type == kHeartbeat) return;
  if (frame.header.type == kCredit) {
    MutexLock lock(mutex_);
    credit_ += frame.header.value;
    if (data_waits_) wake_.NotifyOne();
    return;
  }
  const bool uses_credit = (frame.header.flags & kUsesCredit) != 0;
  frame.header.flags &= static_cast<uint16_t>(~kUsesCredit);
  const auto bytes = static_cast<int64_t>(frame.remaining());
  handler_.OnFrame(frame);
  if (!uses_credit) return;
  MutexLock lock(mutex_);
  consumed_ += bytes;
  if (consumed_ >= options_.window / 4) wake_.NotifyOne();
}

void Connection::Send(const FrameHeader& header, std::string body) {
  MutexLock lock(mutex_);
  messages_.emplace_back(header, std::move(body));
  wake_.NotifyOne();
}

bool Connection::Drained() {
  MutexLock lock(mutex_);
  return closing_ || (messages_.empty() && !speaking_);
}

void Connection::Wake() {
  MutexLock lock(mutex_);
  data_waits_ = true;
  wake_.NotifyOne();
}

void Connection::Cancel(const Status& why) {
  {
    MutexLock lock(mutex_);
    if (!closing_) why_ = why;
    closing_ = true;
    wake_.NotifyOne();
  }
  transport_.Cancel();
}

Duration Connection::Silence() const {
  if (handling_) return Duration(0);
  return Duration(NowMicroseconds() - last_heard_us_);
}

void Connection::WriteLoop() {
  OutgoingFrame frame;
  std::string body;
  for (;;) {
    frame.segments.clear();
    switch (Next(frame, body)) {
      case Turn::kEnd:
        return;
      case Turn::kFrame:
        break;
      case Turn::kData:
        if (!handler_.NextFrame(frame)) continue;
        frame.header.flags |= kUsesCredit;
        Spend(static_cast<int64_t>(PayloadBytes(frame)));
        break;
    }
    if (Status status = transport_.Write(frame); !status.ok()) {
      Cancel(status);
      return;
    }
  }
}

void Connection::Spend(int64_t bytes) {
  MutexLock lock(mutex_);
  credit_ -= bytes;
  data_waits_ = true;
}

Connection::Turn Connection::Next(OutgoingFrame& frame, std::string& body) {
  MutexLock lock(mutex_);
  speaking_ = false;
  for (;;) {
    if (closing_) return Turn::kEnd;
    if (consumed_ >= options_.window / 4) {
      frame.header = {.type = kCredit, .value = consumed_};
      consumed_ = 0;
      return Turn::kFrame;
    }
    if (!messages_.empty()) {
      frame.header = messages_.front().first;
      body = std::move(messages_.front().second);
      messages_.pop_front();
      speaking_ = true;
      frame.segments.push_back({.bytes = std::as_bytes(std::span(body))});
      return Turn::kFrame;
    }
    if (data_waits_ && credit_ > 0) {
      data_waits_ = false;
      frame.header = {};
      return Turn::kData;
    }
    if (!wake_.WaitFor(mutex_, options_.heartbeat) && !closing_ && messages_.empty()) {
      frame.header = {.type = kHeartbeat};
      return Turn::kFrame;
    }
  }
}

}  // namespace tfjob::rpc
