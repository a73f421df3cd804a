#include "tests/fuzz/hello_property.h"

#include <algorithm>
#include <string>

#include "runtime/base/check.h"
#include "runtime/wire/hello.h"

namespace tfjob::fuzz {
namespace {

constexpr size_t kMostOutput = 2048;  // a challenge, and a welcome or a denial

const wire::JobKey& Key() {
  static const wire::JobKey key = *wire::JobKey::Parse(std::string(64, '7'));
  return key;
}

// Passes the bytes to the side until the hello ends. Returns the bytes that the side has sent.
template <typename Side>
std::string Feed(Side& side, std::string_view bytes, size_t piece, Status& status) {
  std::string sent = side.TakeOutput();
  while (!bytes.empty() && side.wanted() > 0 && status.ok()) {
    ENFORCE(side.wanted() <= wire::kListenerHelloBytes, "a message has a limit");
    const size_t taken = std::min({bytes.size(), side.wanted(), piece});
    status = side.Feed(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    sent += side.TakeOutput();
    ENFORCE(sent.size() <= kMostOutput, "a hello sends little");
  }
  return sent;
}

}  // namespace

void CheckListenerProperties(std::string_view bytes, bool keyed, size_t piece) {
  const std::string claims = "ps 0";
  bool checked = false;
  const wire::ListenerHello::Check check = [&](std::string_view said, wire::Purpose) {
    checked = true;
    ENFORCE(said.size() <= wire::kMaxClaimBytes, "claims have a limit");
    return said.empty() ? InvalidArgument("no claims") : OkStatus();
  };
  wire::ListenerHello listener(keyed ? &Key() : nullptr, &claims, &check, wire::Nonce{});
  Status status;
  const std::string sent = Feed(listener, bytes, piece, status);
  if (bytes.substr(0, 4) != std::string_view("TFJH").substr(0, bytes.size())) {
    ENFORCE(!status.ok() && sent.empty(), "a stranger is told nothing");
  }
  ENFORCE(!keyed || (!checked && !listener.done()), "nobody proves a key without it");
  ENFORCE(!keyed || sent.find(claims) == std::string::npos, "claims are for proven peers");
  ENFORCE(!listener.done() || listener.peer_claims().size() <= wire::kMaxClaimBytes, "a limit");
}

void CheckCallerProperties(std::string_view bytes, bool keyed, size_t piece) {
  wire::CallerHello caller(keyed ? &Key() : nullptr, "worker 1", wire::Purpose::kGrpc,
                           wire::Nonce{});
  Status status;
  Feed(caller, bytes, piece, status);
  ENFORCE(!keyed || !caller.done(), "nobody proves a key without it");
  ENFORCE(!caller.done() || status.ok(), "a hello that ended well has no error");
}

}  // namespace tfjob::fuzz
