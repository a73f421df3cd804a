// Defines the hello, the first bytes of every connection between tasks. Both sides use fresh nonces
// to prove that they have the job's key before any other bytes are sent. This code performs no I/O:
// it accepts the bytes received, and returns the bytes to send and whether the hello has succeeded.
// dial.h and listener.h run the hello on sockets.
//
//   caller → listener   open       flags, purpose, nonce
//   listener → caller   challenge  flags, nonce
//   caller → listener   claims     the caller's claims, proof
//   listener → caller   welcome    the listener's claims, proof
//
// Instead of the challenge or the welcome, the listener may send a refusal (one byte, a Refusal).
// After the caller's proof, the listener may instead send a denial (a status code, a message and a
// proof). Each message has a header of 8 bytes: the magic "TFJH", u8 version, u8 type, u16 length
// of the body, little-endian.
//
// A proof is the HMAC-SHA256, under the job's key, of a label that names the side, followed by all
// bytes of the hello before the proof, in order. A proof therefore covers both nonces (no replay),
// the side (no reflection), the flags, the purpose and the claims. The listener's proof covers the
// claims of both sides. This package does not interpret claims. Package rpc uses them for a task's
// identity.
//
// Until the caller has proven that it has the key, the listener reveals only its nonce and whether
// it has a key. A caller with a key reveals its claims to any listener that states that it has a
// key. A side without a key neither sends nor checks proofs; a side with a key refuses a peer
// without one.
//
// The hello keeps strangers out, but does not protect the bytes that follow: anyone who can modify
// traffic in transit can take over a connection after its hello.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/wire/job_key.h"

namespace tfjob::wire {

inline constexpr uint8_t kHelloVersion = 1;
inline constexpr size_t kMaxClaimBytes = 1024;
inline constexpr size_t kMaxDenialBytes = 1024;  // a longer message is truncated

// The purpose of a connection after the hello.
enum class Purpose : uint8_t { kGrpc = 1, kData = 2 };

// The reason why a listener aborts a hello before it accepts the caller's proof.
enum class Refusal : uint8_t { kMalformed = 1, kVersion = 2, kNoKey = 3, kWrongProof = 4 };

// Returns `bytes` in quotes, with escapes for unprintable characters, for logs and errors.
std::string Printable(std::string_view bytes);

// Collects the peer's messages, one at a time.
class MessageReader {
 public:
  // Returns the number of bytes that Append accepts next, or 0 once the message is complete.
  size_t wanted() const;
  // Appends at most wanted() bytes to the message. Returns an error as soon as the bytes cannot be
  // a message: DataLoss if they are not part of a hello, FailedPrecondition if the hello has a
  // different version.
  Status Append(std::string_view bytes);
  bool complete() const { return wanted() == 0; }
  const std::string& bytes() const { return bytes_; }  // with the header
  uint8_t type() const { return static_cast<uint8_t>(bytes_[5]); }
  std::string_view body() const;
  void Clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

// Runs the caller's side of a hello.
class CallerHello {
 public:
  // `key` is borrowed, and null if there is none. `claims` must have at most kMaxClaimBytes bytes.
  CallerHello(const JobKey* key, std::string claims, Purpose purpose, const Nonce& nonce);

  // Returns the bytes to send now. Returns each byte only once.
  std::string TakeOutput() { return std::exchange(output_, {}); }
  // Returns the number of bytes to read next, or 0 once the hello is complete. A larger read could
  // consume bytes that follow the hello.
  size_t wanted() const { return done_ ? 0 : reader_.wanted(); }
  // Processes at most wanted() bytes. An error aborts the hello: FailedPrecondition if one side
  // refuses the other, DataLoss if the listener does not use this protocol, or the listener's
  // denial.
  Status Feed(std::string_view bytes);
  bool done() const { return done_; }
  // Returns the listener's claims, which are proven if there is a key. Valid once the hello has
  // succeeded.
  const std::string& peer_claims() const { return peer_claims_; }

 private:
  Status OnMessage();
  Status OnChallenge();
  Status OnAnswer();
  Status OnRefusal() const;

  const JobKey* const key_;
  const std::string claims_;
  std::string transcript_;
  std::string output_;
  MessageReader reader_;
  bool challenged_ = false;
  bool done_ = false;
  std::string peer_claims_;
};

// The maximum size of a ListenerHello, which runs the listener's side of a hello, including the
// memory that it points to.
inline constexpr size_t kListenerHelloBytes = 4096;

class ListenerHello {
 public:
  // Decides whether to accept a caller, given its claims and purpose. If this side has a key, the
  // caller has already proven that it has the key. An error is sent to the caller.
  using Check = std::function<Status(std::string_view claims, Purpose purpose)>;

  // `key` (null if there is none), `claims` and `check` are borrowed.
  ListenerHello(const JobKey* key, const std::string* claims, const Check* check,
                const Nonce& nonce);

  std::string TakeOutput() { return std::exchange(output_, {}); }
  size_t wanted() const { return done_ ? 0 : reader_.wanted(); }
  // Processes at most wanted() bytes. An error aborts the hello; the output, which may be empty,
  // must be sent before the connection is closed. The error's message is for the log, and describes
  // the caller's mistake.
  Status Feed(std::string_view bytes);
  // Returns whether the hello has succeeded.
  bool done() const { return done_; }
  const std::string& peer_claims() const { return peer_claims_; }
  Purpose purpose() const { return purpose_; }
  // Returns the bytes of a partially received message, for the log.
  const std::string& begun() const { return reader_.bytes(); }
  bool opened() const { return opened_; }

 private:
  Status OnOpen();
  Status OnClaims();
  Status Refuse(Refusal refusal, const Status& why);

  const JobKey* const key_;
  const std::string* const claims_;
  const Check* const check_;
  const Nonce nonce_;
  std::string transcript_;
  std::string output_;
  MessageReader reader_;
  bool opened_ = false;
  bool done_ = false;
  Purpose purpose_{};
  std::string peer_claims_;
};

}  // namespace tfjob::wire
