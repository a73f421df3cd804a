// Implements streams inside one process, without a network, for tests and for parameter servers
// that run in their client's process.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// Connects streams to handlers in the same process. An address may be any string. The handshake is
// the same as over a network. Thread-safe. Handlers must outlive the connector, whose destructor
// breaks all streams and waits until every Serve has returned.
class PipeConnector : public Connector {
 public:
  ~PipeConnector() override;

  void Listen(const std::string& address, const std::string& service, const Identity& identity,
              StreamHandler& handler);
  // Sets how many bytes may wait, per direction, in streams opened later. Data frames require a
  // capacity larger than the window of a Connection, such as the default capacity. Messages require
  // less.
  void SetCapacity(size_t bytes);
  // Breaks the streams to `address` and refuses new ones, as if the process there had died. Waits
  // until every Serve of these streams has returned.
  void Close(const std::string& address);

  StatusOr<OpenStream> Connect(const std::string& address, const std::string& service,
                               const Identity& self, Duration timeout) override;

 private:
  struct Listener {
    Identity identity;
    StreamHandler* handler;
  };
  struct Stream {
    std::string address;
    std::unique_ptr<Transport> end;
    Thread thread;
  };

  void Serve(Listener listener, const std::string& address, Transport& end);

  Mutex mutex_;
  size_t capacity_ ABSL_GUARDED_BY(mutex_) = size_t{32} << 20;
  std::map<std::pair<std::string, std::string>, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  std::list<Stream> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::rpc
