// A stream with its threads: reads in one, writes in another, flow control by credits, heartbeats.
//
// Credits: each side may have `window` payload bytes under way that the other has not consumed yet;
// a receiver gives them back as its handler returns. A transport holds at least a window on its way,
// so that a writer waits for the network, never for the other side's handler, and two sides that both
// send cannot block each other. Control messages need no credit.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;
  // Reader thread, one frame at a time. May not wait for the connection's own sending.
  virtual void OnFrame(IncomingFrame& frame) = 0;
  // When there is credit, by one thread at a time (the writer, or one that calls Flush): fills the next
  // data frame (its segments are empty), or returns false when there is none; Connection::Wake asks
  // again.
  virtual bool NextFrame(OutgoingFrame& frame) = 0;
};

struct ConnectionOptions {
  int64_t window = int64_t{16} << 20;
  // An idle side says so little often, so that silence means something.
  Duration heartbeat{500ms};
};

// Thread-safe. Transport and handler must outlive it.
class Connection {
 public:
  Connection(Transport& transport, ConnectionHandler& handler, ConnectionOptions options = {});
  // Run must have returned, or never have been called.
  ~Connection();

  // Reads in the calling thread until the stream ends; returns why. The writer has ended too.
  Status Run();

  // A message: one segment of text, out of turn, before data that waits.
  void Send(const FrameHeader& header, std::string body = "");
  // Everything so far was given to the transport, data that NextFrame had too (or the connection has
  // ended).
  bool Drained();
  // There may be data to send: NextFrame will be called.
  void Wake();
  // The same, but the calling thread writes the next frames itself when nobody writes: that spares the
  // waking of the writer, and is meant for small frames. The caller holds no lock that NextFrame takes.
  void Flush();
  // Breaks the stream; Run returns `why`. The first reason counts.
  void Cancel(const Status& why);

  // Since the peer's last word.
  Duration Silence() const;

 private:
  enum class Turn { kNothing, kFrame, kData };

  void WriteLoop();
  // Waits until there is something to write and nobody writes: then the pen is this thread's. False at
  // the end of the connection.
  bool AwaitPen();
  // With the pen: writes what waits, up to `frames` frames of data, then lays it down.
  void Write(int frames);
  Turn Next(OutgoingFrame& frame, std::string& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LayDownPen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Spend(int64_t bytes);
  void Handle(IncomingFrame& frame);

  Transport& transport_;
  ConnectionHandler& handler_;
  const ConnectionOptions options_;
  std::atomic<int64_t> last_heard_us_;
  std::atomic<bool> handling_ = false;  // the peer is not silent while we do not listen
  std::atomic<std::thread::id> reader_;

  Mutex mutex_;
  CondVar wake_;  // the writer's
  std::deque<std::pair<FrameHeader, std::string>> messages_ ABSL_GUARDED_BY(mutex_);
  int64_t credit_ ABSL_GUARDED_BY(mutex_);
  int64_t consumed_ ABSL_GUARDED_BY(mutex_) = 0;  // to be given back
  bool data_waits_ ABSL_GUARDED_BY(mutex_) = false;
  bool heartbeat_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;  // somebody has the pen
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  Status why_ ABSL_GUARDED_BY(mutex_);

  // Of whoever has the pen.
  OutgoingFrame frame_;
  std::string body_;
};

}  // namespace tfjob::rpc
