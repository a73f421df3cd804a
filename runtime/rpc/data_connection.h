// Defines data connections: sockets between two tasks that carry no gRPC. They use the same port
// and the same hello as all other connections. The channel of a data connection defines the bytes
// that follow the hello. Streams (socket_connector.h) use one channel, groups use others.
#pragma once

#include <string>

#include "runtime/base/clock.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/identity.h"
#include "runtime/wire/socket.h"

namespace tfjob::rpc {

// A data connection whose hello has succeeded. No bytes after the hello have been read.
struct DataConnection {
  wire::UniqueFd socket;  // non-blocking
  Identity peer;          // proven if the job has a key
  std::string address;    // the address of the peer's end of the socket
  // The channel that the caller named in its claims, which the hello has proven: at most 63
  // lower-case letters, digits, '-' and '_'.
  std::string channel;
};

// Receives a task's data connections. Admit and Accept are called on the thread that runs the
// hellos of all connections, so they must return at once.
class DataHandler {
 public:
  virtual ~DataHandler() = default;
  // Decides whether to accept a caller from the same job and attempt. An error is sent to the
  // caller, and logged once per source address.
  virtual Status Admit(const Identity& peer, const std::string& channel) = 0;
  // Receives a connection that Admit has accepted. No other call is made between Admit and Accept.
  virtual void Accept(DataConnection connection) = 0;
};

// Opens a data connection to the task at `address`. Tries once, for at most `timeout`. Fails with
// Unavailable or DeadlineExceeded (no answer), FailedPrecondition (refused), or Unimplemented (the
// task does not accept data connections on this channel). Every error message names the address.
// Thread-safe.
StatusOr<DataConnection> DialData(const std::string& address, const std::string& channel,
                                  const Identity& self, const Credentials& credentials,
                                  Duration timeout);
// Like DialData, but while the result is Unavailable, retries until the timeout has passed, because
// the task may be starting.
StatusOr<DataConnection> DialDataUntil(const std::string& address, const std::string& channel,
                                       const Identity& self, const Credentials& credentials,
                                       Duration timeout);

}  // namespace tfjob::rpc
