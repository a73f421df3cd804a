// Exchanges the first two frames of every stream. The caller sends its identity and the service it
// wants; the other side answers with its own identity or with the reason for refusing.
#pragma once

#include <string>

#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// The caller's side. Returns the identity of the other side. If that side refuses, returns its
// error (such as FailedPrecondition or Unimplemented); if this side does not accept that identity,
// returns the error of CheckPeer.
StatusOr<Identity> Introduce(Transport& transport, const std::string& service,
                             const Identity& self);

struct Caller {
  Identity identity;
  int32_t protocol_version = 0;
  std::string service;
};
// The accepting side. AwaitCaller reads the hello of the connecting task; the next call must be
// Welcome or Refuse, which answers it.
StatusOr<Caller> AwaitCaller(Transport& transport);
Status Welcome(Transport& transport, const Identity& self);
void Refuse(Transport& transport, const Status& why);

// A caller that was welcomed, and the handler of the service that it requested.
struct Admission {
  Caller caller;
  StreamHandler* handler = nullptr;
};
// Does everything that the accepting side has to do: reads the hello, checks the caller, and either
// welcomes the caller, or refuses it and returns the reason. `find(service)` returns the handler of
// a service, or null if there is none.
template <typename Find>
StatusOr<Admission> Admit(Transport& transport, const Identity& self, const Find& find) {
  ASSIGN_OR_RETURN(Caller caller, AwaitCaller(transport));
  Status status = CheckPeer(self, caller.identity, caller.protocol_version);
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

// Cancels the transport unless the timer is destroyed before the timeout. Every timer runs a
// thread, so it is meant for handshakes only.
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
