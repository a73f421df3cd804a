// The first two frames of every stream: the caller says who it is and what it wants, the other side
// answers who it is, or why not.
#pragma once

#include <string>

#include "runtime/rpc/transport.h"

namespace tfjob::rpc {

// The caller's side. Errors: what the other side refused with (FailedPrecondition, Unimplemented),
// or what CheckPeer says of it.
StatusOr<Identity> Introduce(Transport& transport, const std::string& service,
                             const Identity& self);

struct Caller {
  Identity identity;
  int32_t protocol_version = 0;
  std::string service;
};
// The other side: reads who calls; then one of Welcome and Refuse.
StatusOr<Caller> AwaitCaller(Transport& transport);
Status Welcome(Transport& transport, const Identity& self);
void Refuse(Transport& transport, const Status& why);

// The whole other side: reads, checks, finds nothing wrong and answers; or refuses and returns why.
// `find` gives the handler of a service, or null.
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

// Cancels the transport when the time is up before it is destroyed. Uses a thread: for handshakes.
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
