// Defines the hello, the first bytes of every connection between tasks. Both sides prove that they
// have the job's key, over fresh nonces, before anything else is sent. Pure: bytes go in, bytes and
// a verdict come out. dial.h and listener.h run it on sockets.
//
//   caller → listener   open       flags, purpose, nonce
//   listener → caller   challenge  flags, nonce
//   caller → listener   claims     the caller's claims, proof
//   listener → caller   welcome    the listener's claims, proof
//
// Instead of the challenge or the welcome, the listener may send a refusal (a Refusal, one byte)
// or, after the caller's proof, a denial (a status code, a message, proof). Each message has a
// header of 8 bytes: the magic "TFJH", u8 version, u8 type, u16 length of the body, little-endian.
//
// A proof is HMAC-SHA256 under the job's key of a label that names the side, and of all bytes that
// the hello has had so far, in order, up to the proof itself. It therefore covers both nonces (no
// replay), the side (no reflection), the flags, the purpose and the claims; the listener's proof
// covers the claims of both sides. Claims are opaque here: rpc puts a task's identity into them.
//
// The listener reveals nothing but its nonce, and whether it has a key, until the caller has proven
// the key. A caller reveals its claims to any listener that says it has a key. A side without a key
// sends and checks no proofs; a side with a key refuses one without.
//
// The hello keeps strangers out. It does not protect the bytes after it: whoever can change traffic
// on its way can take over a connection whose hello has ended.
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
inline constexpr size_t kMaxDenialBytes = 1024;  // a longer message is cut

// The purpose of a connection after the hello. Listeners deny kData, which is reserved.
enum class Purpose : uint8_t { kGrpc = 1, kData = 2 };

// Why a listener ends a hello before the caller's proof.
enum class Refusal : uint8_t { kMalformed = 1, kVersion = 2, kNoKey = 3, kWrongProof = 4 };

// Returns `bytes` in quotes with escapes instead of unprintable characters, for logs and errors.
std::string Printable(std::string_view bytes);

// Collects the messages of one side's peer. Never holds more than one message.
class MessageReader {
 public:
  // The number of bytes that Append takes next. 0 once `message` is complete.
  size_t wanted() const;
  // `bytes` must not be more than wanted(). Fails as soon as the bytes cannot be a message: with
  // DataLoss if they are no hello, with FailedPrecondition if it has another version.
  Status Append(std::string_view bytes);
  bool complete() const { return wanted() == 0; }
  const std::string& bytes() const { return bytes_; }  // with the header
  uint8_t type() const { return static_cast<uint8_t>(bytes_[5]); }
  std::string_view body() const;
  void Clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

// The connecting side.
class CallerHello {
 public:
  // `key` is borrowed, and null if there is none. `claims` has at most kMaxClaimBytes.
  CallerHello(const JobKey* key, std::string claims, Purpose purpose, const Nonce& nonce);

  // Returns the bytes to send now, at most once each.
  std::string TakeOutput() { return std::exchange(output_, {}); }
  // The number of bytes to read next; 0 once the hello has ended. Reading more would take bytes of
  // what follows the hello.
  size_t wanted() const { return done_ ? 0 : reader_.wanted(); }
  // Takes at most wanted() bytes. An error ends the hello: FailedPrecondition if one side refuses
  // the other, DataLoss if the listener does not speak this protocol, or the listener's denial.
  Status Feed(std::string_view bytes);
  bool done() const { return done_; }
  // Valid after the hello has ended without an error: what the listener claims, and has proven.
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

// The accepting side. Its memory, with all that it points to, is at most kListenerHelloBytes.
inline constexpr size_t kListenerHelloBytes = 4096;

class ListenerHello {
 public:
  // Judges a caller that has proven the key (or that needs not, because this side has none). An
  // error is sent to the caller.
  using Check = std::function<Status(std::string_view claims, Purpose purpose)>;

  // `key` (null if there is none), `claims` and `check` are borrowed.
  ListenerHello(const JobKey* key, const std::string* claims, const Check* check,
                const Nonce& nonce);

  std::string TakeOutput() { return std::exchange(output_, {}); }
  size_t wanted() const { return done_ ? 0 : reader_.wanted(); }
  // Takes at most wanted() bytes. An error ends the hello; the output, which may be empty, is to be
  // sent before the connection is closed. The message says for the log what the caller did wrong.
  Status Feed(std::string_view bytes);
  // Whether the caller has been welcomed.
  bool done() const { return done_; }
  const std::string& peer_claims() const { return peer_claims_; }
  Purpose purpose() const { return purpose_; }
  // The bytes of a message that has begun but has not arrived as a whole, for the log.
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
