// Serves the streams that other tasks open to this task on data connections. Each stream has its
// own thread, which serves the stream until it is closed. Private to this package.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/source_log.h"
#include "runtime/base/thread.h"
#include "runtime/rpc/data_connection.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/socket_transport.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// The maximum number of streams per task. A task opens one stream per server, and one to the leader
// of its group. Streams that an earlier process of the task has left behind also count, until they
// are found to be broken.
inline constexpr int kMostStreamsOfATask = 64;
// The maximum number of streams. Every stream occupies a thread. A job has fewer tasks than this.
inline constexpr int kMostStreams = 1 << 14;
// The maximum number of concurrent handshakes. A peer can prolong its handshake to
// kHandshakeTimeout.
inline constexpr int kMostGreeting = 256;

class StreamServer : public DataHandler {
 public:
  using Handlers = std::vector<std::pair<std::string, StreamHandler*>>;  // by service name

  StreamServer(Identity identity, Handlers handlers);
  // Breaks all streams.
  ~StreamServer() override;

  // Returns ResourceExhausted if the task has too many streams, if the total number of streams is
  // too large, or if too many streams are in their handshake. Returns a handler's error if no
  // handler admits the task.
  Status Admit(const Identity& peer, const std::string& channel) override;
  // Starts a thread that serves the stream.
  void Accept(DataConnection connection) override;
  // Waits up to the timeout until the open streams are closed, then breaks the remaining ones.
  // Returns once no handler is in use. Accept must not be called afterwards.
  void Stop(Duration timeout);

 private:
  struct Stream {
    Identity peer;
    std::string address;
    std::unique_ptr<SocketTransport> transport;  // null once the stream is closed
    Thread thread;
  };
  using Streams = std::list<Stream>;

  void Serve(const Stream& stream);
  StatusOr<Admission> Greet(const Stream& stream);
  // Called on a stream's thread: closes that stream, and joins the threads of streams that were
  // closed earlier.
  void End(Streams::iterator stream);
  Status AdmitAnywhere(const Identity& peer) const;
  void LogBroken(const Stream& stream, const Status& why);
  StreamHandler* Find(const std::string& service) const;

  const Identity identity_;
  const Handlers handlers_;
  Mutex mutex_;
  CondVar changed_;
  SourceLog broken_ ABSL_GUARDED_BY(mutex_);
  int greeting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> streams_of_ ABSL_GUARDED_BY(mutex_);  // open streams by task
  // An open stream is used only by its own thread, except that Stop may cancel its transport.
  Streams open_ ABSL_GUARDED_BY(mutex_), ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::rpc
