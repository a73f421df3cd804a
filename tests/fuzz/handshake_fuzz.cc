// Checks the reader of the first message of a stream (rpc/handshake.h) with arbitrary bytes.
//   - Reading never crashes.
//   - If a caller can be read, its names are safe for logs, and writing it and reading it again
//     yields the same caller.
//   - No frame is accepted both as a request and as the answer to one.
#include <string>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/rpc/handshake.h"

namespace tfjob::fuzz {
namespace {

// Delivers one frame, and then ends. Discards all frames that are written.
class OneFrame : public rpc::Transport {
 public:
  explicit OneFrame(std::string_view bytes) : bytes_(bytes) {}
  Status Write(const rpc::OutgoingFrame&) override { return OkStatus(); }
  Status Read(rpc::IncomingFrame& frame) override {
    if (read_) return Unavailable("the end");
    read_ = true;
    frame.pieces = {std::as_bytes(std::span(bytes_))};
    return frame.Parse();
  }
  void Cancel() override {}

 private:
  const std::string bytes_;  // a copy, so that a sanitizer detects reads beyond its end
  bool read_ = false;
};

bool IsPlain(const std::string& name) {
  return name.size() <= 63 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string::npos;
}

void CheckCaller(const rpc::Caller& caller) {
  const rpc::Identity& identity = caller.identity;
  ENFORCE(IsPlain(identity.task_type) && IsPlain(caller.service), "names are short and plain");
  ENFORCE(identity.task_index >= 0, "tasks are counted from 0");
  const StatusOr<std::string> claims = rpc::ClaimsOf(identity);
  if (!claims.ok()) return;  // the claims do not fit into a hello
  const StatusOr<rpc::Caller> again = rpc::ReadClaims(*claims);
  ENFORCE(again.ok() && again->identity == identity, "an identity survives");
}

}  // namespace
}  // namespace tfjob::fuzz

// The first byte of an input selects how the remaining bytes are read: as the claims of a task (c),
// or as a frame (f).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tfjob;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'c') {
    const StatusOr<rpc::Caller> caller = rpc::ReadClaims(std::string(rest));
    if (caller.ok()) fuzz::CheckCaller(*caller);
  }
  if (data[0] == 'f') {
    fuzz::OneFrame asks(rest), answers(rest);
    const StatusOr<rpc::Caller> caller = rpc::AwaitCaller(asks);
    if (caller.ok()) fuzz::CheckCaller(*caller);
    const rpc::Identity self{.task_type = "worker", .incarnation = 1};
    const StatusOr<rpc::Identity> peer = rpc::Introduce(answers, "parameters", self);
    ENFORCE(!peer.ok() || !caller.ok(), "no frame is both a question and its answer");
  }
  return 0;
}
