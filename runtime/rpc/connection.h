// A stream with its threads: reads in one, writes in another, flow control by credits, heartbeats.
//
// Credits: each side may have `window` payload bytes under way that the other has not consumed yet;
// a receiver gives them back as its handler returns. Readers never wait for writers, so two sides
// that both send cannot block each other. Control messages need no credit.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
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
  // Writer thread, when there is credit: fills the next data frame (its segments are empty), or
  // returns false when there is none; Connection::Wake asks again.
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
  // Every message so far was given to the transport (or the connection has ended).
  bool Drained();
  // There may be data to send: NextFrame will be called.
  void Wake();
  // Breaks the stream; Run returns `why`. The first reason counts.
  void Cancel(const Status& why);

  // Since the peer's last word.
  Duration Silence() const;

 private:
  enum class Turn { kFrame, kData, kEnd };

  void WriteLoop();
  // Waits for something to write: `frame` (over `body`), data to be asked for, or the end.
  Turn Next(OutgoingFrame& frame, std::string& body);
  void Spend(int64_t bytes);
  void Handle(IncomingFrame& frame);

  Transport& transport_;
  ConnectionHandler& handler_;
  const ConnectionOptions options_;
  std::atomic<int64_t> last_heard_us_;
  std::atomic<bool> handling_ = false;  // the peer is not silent while we do not listen

  Mutex mutex_;
  CondVar wake_;
  std::deque<std::pair<FrameHeader, std::string>> messages_ ABSL_GUARDED_BY(mutex_);
  int64_t credit_ ABSL_GUARDED_BY(mutex_);
  int64_t consumed_ ABSL_GUARDED_BY(mutex_) = 0;  // to be given back
  bool data_waits_ ABSL_GUARDED_BY(mutex_) = false;
  bool speaking_ ABSL_GUARDED_BY(mutex_) = false;  // a message is being written
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  Status why_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::rpc
