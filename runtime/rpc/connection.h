// Runs one end of a stream, with heartbeats and credit-based flow control. Both ends work in the
// same way: one thread reads, and one thread at a time writes.
//
// Credits: a side sends a data frame only while it has fewer than `window` payload bytes in flight,
// that is, sent but not yet consumed by the other side. A receiver returns credits for frames that
// its handler has consumed. Only the connection's own writer waits for the network, and therefore
// possibly for the other side's handler. If a thread that calls Flush has bytes that the network
// does not accept at once, it leaves them to the writer. A reader therefore never waits for the
// other side to read, so two sides that both send cannot block each other. Messages (see Send) need
// no credit, but the number of messages that may wait is limited. The stream breaks (DataLoss) if a
// peer returns credit for bytes that were not sent to it, or sends far more than its credit allows.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // Called on the reader thread, one frame at a time. Must not wait for this connection to send.
  virtual void OnFrame(IncomingFrame& frame) = 0;
  // Returns whether OnFrame itself receives the payload of a frame with this header
  // (IncomingFrame::Receive). Other frames are loaded before OnFrame is called.
  virtual bool TakesInPlace(const FrameHeader& header) const {
    (void)header;
    return false;
  }
  // Called while there is credit, by one thread at a time (the writer, or a caller of Flush). Fills
  // `frame`, which has no segments yet, with the next data frame, or returns false if there is
  // none. Once NextFrame has returned false, it is not called again until the next Wake or Flush.
  virtual bool NextFrame(OutgoingFrame& frame) = 0;
};

struct ConnectionOptions {
  int64_t window = int64_t{16} << 20;
  // The interval at which an idle side sends heartbeats. Silence therefore indicates a fault.
  Duration heartbeat{500ms};
  // The limit on waiting messages. If more bytes or messages than this are waiting, the peer is not
  // reading the answers that it requests, and the next message breaks the stream
  // (ResourceExhausted).
  size_t max_queued_bytes = 2 * kMaxFrameBytes;
  size_t max_queued_messages = size_t{1} << 14;
};

// Thread-safe. The transport and the handler must outlive the connection.
class Connection {
 public:
  Connection(Transport& transport, ConnectionHandler& handler, ConnectionOptions options = {});
  // Run must have returned or never been called.
  ~Connection();

  // Reads frames on the calling thread until the stream is closed or broken, then stops the writer
  // thread and returns the reason. Returns ResourceExhausted if the writer thread cannot be
  // started.
  Status Run();

  // Queues a message with the segment `body`, to be sent ahead of waiting data.
  void Send(const FrameHeader& header, std::string body = "");
  // Returns true if the connection is closed, or if all queued messages and all data that NextFrame
  // provides have been passed to the transport.
  bool Drained();
  // Signals that there may be data to send, so that NextFrame is called.
  void Wake();
  // Like Wake, but if no thread is writing, the calling thread writes the next frames itself
  // instead of waking the writer. Meant for small frames: bytes that the network does not accept at
  // once are left to the writer. The caller must not hold a lock that NextFrame acquires.
  void Flush();
  // Breaks the stream. Run then returns `why` without handling frames that have already arrived. If
  // Cancel is called several times, Run returns the first reason.
  void Cancel(const Status& why);

  // Returns the time since the peer was last heard from.
  Duration Silence() const;

 private:
  enum class Turn { kNothing, kFrame, kData, kRest };

  // Like Cancel, but Run handles the frames that have arrived.
  void Break(const Status& why);
  Status Why();
  void ReadFrames();
  void WriteLoop();
  // Waits until there are frames to write and no other thread is writing, then acquires the pen,
  // that is, the right to write. Returns false once the connection is closed.
  bool AwaitPen();
  // Requires the pen. Writes the waiting frames, including up to `frames` data frames, then
  // releases the pen. Waits for the network only if `may_wait`.
  void Write(int frames, bool may_wait);
  // Writes frame_, or the part of it that is not written. Returns false if bytes are left to the
  // writer.
  StatusOr<bool> WriteFrame(Turn turn, bool may_wait);
  // Decides which frame to write next. If the result is kFrame, Next has filled frame_. If it is
  // kData, the caller must call NextFrame to fill frame_. If it is kRest, frame_ still contains the
  // frame.
  Turn Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LayDownPen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Spend(int64_t bytes);
  Status Handle(IncomingFrame& frame);
  Status TakeCredit(int64_t bytes);

  Transport& transport_;
  ConnectionHandler& handler_;
  const ConnectionOptions options_;
  std::atomic<int64_t> last_heard_us_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> handling_ = false;  // true while the handler runs
  std::atomic<Thread::Id> reader_;

  Mutex mutex_;
  CondVar wake_;  // wakes the writer
  std::deque<std::pair<FrameHeader, std::string>> messages_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of the messages
  int64_t credit_ ABSL_GUARDED_BY(mutex_);
  int64_t consumed_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes not yet returned as credit
  bool data_waits_ ABSL_GUARDED_BY(mutex_) = false;
  bool heartbeat_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // a thread holds the pen
  bool rest_ ABSL_GUARDED_BY(mutex_) = false;     // frame_ has been written only in part
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  Status why_ ABSL_GUARDED_BY(mutex_);

  // Used only by the thread that holds the pen. Unchanged until the whole frame has been written.
  OutgoingFrame frame_;
  std::string body_;
};

}  // namespace tfjob::rpc
