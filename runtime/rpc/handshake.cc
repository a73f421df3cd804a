#include "runtime/rpc/handshake.h"

#include <algorithm>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/rpc/handshake.pb.h"
#include "runtime/rpc/wire_status.h"
#include "runtime/wire/hello.h"

namespace tfjob::rpc {
namespace {

constexpr uint16_t kHello = 0xFFF1;
constexpr uint16_t kWelcome = 0xFFF2;
constexpr uint16_t kRefusal = 0xFFF3;  // value: the status code; body: its message
// The maximum size of a message that a peer may send before it is identified.
constexpr size_t kMaxHelloBytes = 64 << 10;
constexpr size_t kMaxNameBytes = 63;  // as in Kubernetes
constexpr size_t kMaxUidBytes = 256;

Status WriteText(Transport& transport, const FrameHeader& header, const std::string& text) {
  OutgoingFrame frame{.header = header, .segments = {{.bytes = std::as_bytes(std::span(text))}}};
  return transport.Write(frame);
}

std::string Encode(const Identity& identity, const std::string& service) {
  Hello hello;
  hello.set_protocol_version(kProtocolVersion);
  hello.set_job_uid(identity.job_uid);
  hello.set_attempt(identity.attempt);
  hello.set_task_type(identity.task_type);
  hello.set_task_index(identity.task_index);
  hello.set_incarnation(identity.incarnation);
  hello.set_service(service);
  hello.set_run(identity.run);
  return hello.SerializeAsString();
}

// Returns whether a text can be a name. Names appear in logs and messages, and as keys of maps, so
// they must be short and contain only plain characters.
bool IsName(const std::string& text) {
  return text.size() <= kMaxNameBytes && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

bool IsPlausible(const Hello& hello) {
  const std::string& uid = hello.job_uid();
  const bool printable =
      std::ranges::all_of(uid, [](unsigned char c) { return c > ' ' && c < 0x7F; });
  return IsName(hello.task_type()) && IsName(hello.service()) && hello.task_index() >= 0 &&
         uid.size() <= kMaxUidBytes && printable;
}

StatusOr<Caller> DecodeText(const std::string& text) {
  Hello hello;
  if (!hello.ParseFromString(text) || !IsPlausible(hello)) {
    return DataLoss("the handshake message is unreadable");
  }
  return Caller{.identity = {.job_uid = hello.job_uid(),
                             .attempt = hello.attempt(),
                             .task_type = hello.task_type(),
                             .task_index = hello.task_index(),
                             .incarnation = hello.incarnation(),
                             .run = hello.run()},
                .protocol_version = hello.protocol_version(),
                .service = hello.service()};
}

StatusOr<std::string> ReadText(IncomingFrame& frame) {
  // Check the size before the bytes are received, because the peer is not yet identified.
  if (frame.remaining() > kMaxHelloBytes) return DataLoss("the handshake message is unreadable");
  RETURN_IF_ERROR(frame.Load());
  return frame.ReadString(frame.remaining());
}

StatusOr<Caller> Decode(IncomingFrame& frame) {
  ASSIGN_OR_RETURN(const std::string text, ReadText(frame));
  return DecodeText(text);
}

}  // namespace

StatusOr<std::string> ClaimsOf(const Identity& self, const std::string& channel) {
  std::string claims = Encode(self, channel);
  if (claims.size() > wire::kMaxClaimBytes) {
    return InvalidArgument("TFJOB_UID: expected at most ", kMaxUidBytes, " bytes, got ",
                           self.job_uid.size());
  }
  return claims;
}

StatusOr<Caller> ReadClaims(const std::string& claims) {
  return DecodeText(claims);
}

Status CheckOwner(const Identity& owner, const Identity& caller) {
  if (owner == caller) return OkStatus();
  return FailedPrecondition("refused: the stream is of ", TaskName(caller),
                            ", but its connection was opened by ",
                            owner.task_type.empty() ? "no task" : TaskName(owner));
}

StatusOr<Identity> Introduce(Transport& transport, const std::string& service,
                             const Identity& self) {
  RETURN_IF_ERROR(WriteText(transport, {.type = kHello}, Encode(self, service)));
  IncomingFrame frame;
  RETURN_IF_ERROR(transport.BeginRead(frame));
  if (frame.header.type == kRefusal) {
    ASSIGN_OR_RETURN(const std::string why, ReadText(frame));
    return ErrorFromWire(frame.header.value, why);
  }
  if (frame.header.type != kWelcome) return DataLoss("the peer does not answer the handshake");
  ASSIGN_OR_RETURN(Caller peer, Decode(frame));
  RETURN_IF_ERROR(CheckPeer(self, peer.identity, peer.protocol_version));
  return peer.identity;
}

StatusOr<Caller> AwaitCaller(Transport& transport) {
  IncomingFrame frame;
  RETURN_IF_ERROR(transport.BeginRead(frame));
  if (frame.header.type != kHello) return DataLoss("the stream does not begin with a handshake");
  return Decode(frame);
}

Status Welcome(Transport& transport, const Identity& self) {
  return WriteText(transport, {.type = kWelcome}, Encode(self, ""));
}

void Refuse(Transport& transport, const Status& why) {
  // Ignore errors, because the stream is closed even if the refusal does not arrive.
  (void)WriteText(transport, {.type = kRefusal, .value = static_cast<int64_t>(why.code())},
                  std::string(Message(why)));
}

struct HandshakeTimer::State {
  Mutex mutex;
  CondVar done_changed;
  bool done ABSL_GUARDED_BY(mutex) = false;
  bool expired ABSL_GUARDED_BY(mutex) = false;
  Thread thread;
};

HandshakeTimer::HandshakeTimer(Transport& transport, Duration timeout)
    : state_(std::make_unique<State>()) {
  state_->thread = Thread("handshake-timer", [state = state_.get(), &transport, timeout] {
    const auto deadline = SteadyNow() + timeout;
    MutexLock lock(state->mutex);
    while (!state->done) {
      if (!state->done_changed.WaitUntil(state->mutex, deadline) && !state->done) {
        // Cancel the transport, which unblocks the Read or Write that the handshake waits on.
        state->expired = true;
        transport.Cancel();
        return;
      }
    }
  });
}

HandshakeTimer::~HandshakeTimer() {
  {
    MutexLock lock(state_->mutex);
    state_->done = true;
    state_->done_changed.NotifyOne();
  }
  state_->thread.Join();
}

bool HandshakeTimer::expired() const {
  MutexLock lock(state_->mutex);
  return state_->expired;
}

}  // namespace tfjob::rpc
