// Exchanges the first two frames of every stream. The caller sends its identity and the name of the
// service that it requests. The other side answers with its own identity or with the reason for its
// refusal.
//
// On every socket, the hello of runtime/wire comes first; its claims contain the identities of both
// tasks. A stream must come from the task that opened the stream's socket.
#pragma once

#include <string>

#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// Performs the caller's side of the handshake. Returns the identity of the other side. If the other
// side refuses, returns its error (such as FailedPrecondition or Unimplemented). If this side does
// not accept the other side's identity, returns the error from CheckPeer.
StatusOr<Identity> Introduce(Transport& transport, const std::string& service,
                             const Identity& self);

// Returns the claims that a task presents in the hello of a connection. `channel` is the channel of
// a data connection (data_connection.h), or "" for other connections. Returns InvalidArgument if
// the job's UID makes the claims too long.
StatusOr<std::string> ClaimsOf(const Identity& self, const std::string& channel = "");

struct Caller {
  Identity identity;
  int32_t protocol_version = 0;
  std::string service;  // in the claims of a data connection: its channel
};
// Parses the claims of a task. Returns DataLoss if the claims are unreadable.
StatusOr<Caller> ReadClaims(const std::string& claims);
// Implement the accepting side. AwaitCaller reads the caller's first frame. The next call must be
// Welcome or Refuse, which answers that frame.
StatusOr<Caller> AwaitCaller(Transport& transport);
Status Welcome(Transport& transport, const Identity& self);
void Refuse(Transport& transport, const Status& why);

// Returns FailedPrecondition if a stream of one task arrives over another task's socket.
Status CheckOwner(const Identity& owner, const Identity& caller);

// A welcomed caller, and the handler of the service that it requested.
struct Admission {
  Caller caller;
  StreamHandler* handler = nullptr;
};
// Performs the accepting side of the handshake: reads the caller's first frame, checks the caller,
// and either welcomes the caller, or refuses it and returns the reason. `find(service)` returns the
// handler of a service, or null if there is none. `owner` is the task that opened the stream's
// connection, or null for streams without a connection, such as pipes.
template <typename Find>
StatusOr<Admission> Admit(Transport& transport, const Identity& self, const Find& find,
                          const Identity* owner = nullptr) {
  StatusOr<Caller> awaited = AwaitCaller(transport);
  if (!awaited.ok()) {
    Refuse(transport, awaited.status());
    return awaited.status();
  }
  Caller& caller = *awaited;
  Status status = CheckPeer(self, caller.identity, caller.protocol_version);
  if (status.ok() && owner != nullptr) status = CheckOwner(*owner, caller.identity);
  StreamHandler* handler = status.ok() ? find(caller.service) : nullptr;
  if (status.ok() && handler == nullptr) {
    status = Unimplemented(TaskName(self), " has no service '", caller.service, "'");
  }
  if (status.ok()) status = handler->Admit(caller.identity);
  if (!status.ok()) {
    Refuse(transport, status);
    return status;
  }
  RETURN_IF_ERROR(Welcome(transport, self));
  return Admission{std::move(caller), handler};
}

// How long a caller has to complete a handshake.
inline constexpr Duration kHandshakeTimeout{10s};

// Cancels the transport at the timeout, unless the timer is destroyed earlier. Every timer runs a
// thread, so use timers only for handshakes.
class HandshakeTimer {
 public:
  HandshakeTimer(Transport& transport, Duration timeout);
  ~HandshakeTimer();
  bool expired() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tfjob::rpc
