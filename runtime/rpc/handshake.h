// Exchanges the first two frames of every stream. The caller sends its identity and the service it
// wants; the other side answers with its own identity or with the reason for refusing.
#pragma once

#include <string>

#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// The caller's side. Returns the error with which the other side refused (such as
// FailedPrecondition or Unimplemented), or the error of CheckPeer if the other side
// is not acceptable.
StatusOr<Identity> Introduce(Transport& transport, const std::string& service,
                             const Identity& self);

struct Caller {
  Identity identity;
  int32_t protocol_version = 0;
  std::string service;
};
// The accepting side: reads the caller's hello. The caller of AwaitCaller must then call
// Welcome or Refuse.
StatusOr<Caller> AwaitCaller(Transport& transport);
Status Welcome(Transport& transport, const Identity& self);
void Refuse(Transport& transport, const Status& why);

// The complete accepting side: reads the hello, checks the caller, and welcomes it, or refuses it
// and returns the reason. `find` returns the handler of a service, or null.
struct Admission {
  Caller caller;
  StreamHandler* handler = nullptr;
};
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
