#include "runtime/wire/hello.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "runtime/base/check.h"

namespace tfjob::wire {
namespace {

constexpr std::string_view kMagic = "TFJH";
constexpr size_t kHelloHeaderBytes = 8;
constexpr size_t kNonceBytes = sizeof(Nonce), kProofBytes = sizeof(Proof);
constexpr size_t kMaxBodyBytes = 1 + std::max(kMaxClaimBytes, kMaxDenialBytes) + kProofBytes;
constexpr std::string_view kCallerLabel = "tfjob hello: caller";
constexpr std::string_view kListenerLabel = "tfjob hello: listener";

enum MessageType : uint8_t {
  kOpen = 1,
  kChallenge = 2,
  kClaims = 3,
  kWelcome = 4,
  kRefusal = 5,
  kDenial = 6,
};

// The flags of open and challenge.
constexpr uint8_t kHasKey = 1;

std::string_view BytesOf(const std::array<uint8_t, 32>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

char FlagsOf(const JobKey* key) {
  return static_cast<char>(key != nullptr ? kHasKey : 0);
}

std::string HelloHeader(uint8_t type, size_t body_bytes) {
  std::string header(kMagic);
  header += static_cast<char>(kHelloVersion);
  header += static_cast<char>(type);
  header += static_cast<char>(body_bytes & 0xFF);
  header += static_cast<char>(body_bytes >> 8);
  return header;
}

// Returns a message with its header and, if there is a key, a proof at its end.
std::string Seal(const JobKey* key, std::string_view label, std::string_view transcript,
                 uint8_t type, std::string_view body) {
  std::string message = HelloHeader(type, body.size() + (key != nullptr ? kProofBytes : 0));
  message += body;
  if (key != nullptr) {
    const Proof proof = key->Sign({label, transcript, message});
    message += BytesOf(proof);
  }
  return message;
}

// Splits the proof off a message's body and checks the proof. Returns the body without the proof,
// or nullopt if the proof is wrong.
std::optional<std::string_view> Unseal(const JobKey* key, std::string_view label,
                                       std::string_view transcript, const MessageReader& reader) {
  const std::string_view body = reader.body();
  if (key == nullptr) return body;
  if (body.size() < kProofBytes) return std::nullopt;
  const std::string_view message = reader.bytes();
  const std::string_view signed_part = message.substr(0, message.size() - kProofBytes);
  if (!Equal(key->Sign({label, transcript, signed_part}), body.substr(body.size() - kProofBytes))) {
    return std::nullopt;
  }
  return body.substr(0, body.size() - kProofBytes);
}

Status NotAPeer(std::string_view bytes) {
  return DataLoss("not a TFJob peer (got ", Printable(bytes), ")");
}

Status OtherVersion(int version) {
  return FailedPrecondition("refused: the peer speaks version ", version,
                            " of the hello, this task version ", int{kHelloVersion},
                            ": run the same version of the trainer in all tasks");
}

}  // namespace

std::string Printable(std::string_view bytes) {
  constexpr size_t kShown = 32;
  const std::string shown(bytes.substr(0, kShown));
  return StrCat("\"", absl::CHexEscape(shown), bytes.size() > kShown ? "…\"" : "\"");
}

// ---- MessageReader

size_t MessageReader::wanted() const {
  if (bytes_.size() < kHelloHeaderBytes) return kHelloHeaderBytes - bytes_.size();
  const size_t body = static_cast<uint8_t>(bytes_[6]) | static_cast<uint8_t>(bytes_[7]) << 8;
  return kHelloHeaderBytes + body - bytes_.size();
}

std::string_view MessageReader::body() const {
  return std::string_view(bytes_).substr(kHelloHeaderBytes);
}

Status MessageReader::Append(std::string_view bytes) {
  ENFORCE(bytes.size() <= wanted(), "the hello takes no bytes of what follows it");
  bytes_ += bytes;
  const size_t compared = std::min(bytes_.size(), kMagic.size());
  if (std::string_view(bytes_).substr(0, compared) != kMagic.substr(0, compared)) {
    return NotAPeer(bytes_);
  }
  if (bytes_.size() > 4 && static_cast<uint8_t>(bytes_[4]) != kHelloVersion) {
    return OtherVersion(static_cast<uint8_t>(bytes_[4]));
  }
  if (bytes_.size() == kHelloHeaderBytes) {
    if (wanted() > kMaxBodyBytes) return NotAPeer(bytes_);
    bytes_.reserve(kHelloHeaderBytes + wanted());  // exact, because there may be many readers
  }
  return OkStatus();
}

// ---- CallerHello

CallerHello::CallerHello(const JobKey* key, std::string claims, Purpose purpose, const Nonce& nonce)
    : key_(key), claims_(std::move(claims)) {
  ENFORCE(claims_.size() <= kMaxClaimBytes, "claims fit into a message");
  output_ = HelloHeader(kOpen, 2 + kNonceBytes);
  output_ += FlagsOf(key_);
  output_ += static_cast<char>(purpose);
  output_ += BytesOf(nonce);
  transcript_ = output_;
}

Status CallerHello::Feed(std::string_view bytes) {
  RETURN_IF_ERROR(reader_.Append(bytes));
  if (!reader_.complete()) return OkStatus();
  RETURN_IF_ERROR(OnMessage());
  reader_.Clear();
  return OkStatus();
}

Status CallerHello::OnMessage() {
  if (reader_.type() == kRefusal) return OnRefusal();
  return challenged_ ? OnAnswer() : OnChallenge();
}

Status CallerHello::OnRefusal() const {
  const std::string_view body = reader_.body();
  if (body.size() != 1) return NotAPeer(reader_.bytes());
  switch (static_cast<Refusal>(body[0])) {
    case Refusal::kNoKey:
      return FailedPrecondition(
          "refused: the task has a job key and this one has none: set TFJOB_KEY to the same value "
          "in all tasks of a job");
    case Refusal::kWrongProof:
      return FailedPrecondition(
          "refused: the task has another job key: either another job's task has this address, or "
          "TFJOB_KEY differs between the tasks of the job");
    case Refusal::kVersion:
    case Refusal::kMalformed:
      break;
  }
  return FailedPrecondition(
      "refused: the task does not understand this version of the hello: run the same version of "
      "the trainer in all tasks");
}

Status CallerHello::OnChallenge() {
  const std::string_view body = reader_.body();
  if (reader_.type() != kChallenge || body.size() != 1 + kNonceBytes) {
    return NotAPeer(reader_.bytes());
  }
  const bool keyed = (body[0] & kHasKey) != 0;
  if (key_ != nullptr && !keyed) {
    return FailedPrecondition(
        "refused: this task has a job key and the peer has none: set TFJOB_KEY to the same value "
        "in all tasks of a job");
  }
  if (key_ == nullptr && keyed)
    return NotAPeer(reader_.bytes());  // a TFJob peer with a key would have refused
  transcript_ += reader_.bytes();
  output_ = Seal(key_, kCallerLabel, transcript_, kClaims, claims_);
  transcript_ += output_;
  challenged_ = true;
  return OkStatus();
}

Status CallerHello::OnAnswer() {
  const uint8_t type = reader_.type();
  if (type != kWelcome && type != kDenial) return NotAPeer(reader_.bytes());
  const auto body = Unseal(key_, kListenerLabel, transcript_, reader_);
  if (!body) {
    return FailedPrecondition(
        "refused: the peer cannot prove the job's key: another program has this address");
  }
  if (type == kDenial) {
    const auto code = body->empty() ? 0 : static_cast<uint8_t>((*body)[0]);
    constexpr auto kLast = static_cast<int>(StatusCode::kUnauthenticated);
    if (code == 0 || code > kLast) return NotAPeer(reader_.bytes());
    return Status(static_cast<StatusCode>(code), std::string(body->substr(1)));
  }
  peer_claims_ = *body;
  done_ = true;
  return OkStatus();
}

// ---- ListenerHello

ListenerHello::ListenerHello(const JobKey* key, const std::string* claims, const Check* check,
                             const Nonce& nonce)
    : key_(key), claims_(claims), check_(check), nonce_(nonce) {
  ENFORCE(claims_->size() <= kMaxClaimBytes, "claims fit into a message");
}

Status ListenerHello::Feed(std::string_view bytes) {
  if (const Status status = reader_.Append(bytes); !status.ok()) {
    // Only a TFJob peer gets an answer.
    return absl::IsDataLoss(status) ? status : Refuse(Refusal::kVersion, status);
  }
  if (!reader_.complete()) return OkStatus();
  RETURN_IF_ERROR(opened_ ? OnClaims() : OnOpen());
  reader_.Clear();
  return OkStatus();
}

Status ListenerHello::Refuse(Refusal refusal, const Status& why) {
  output_ = HelloHeader(kRefusal, 1);
  output_ += static_cast<char>(refusal);
  return why;
}

Status ListenerHello::OnOpen() {
  const std::string_view body = reader_.body();
  if (reader_.type() != kOpen || body.size() != 2 + kNonceBytes) {
    return Refuse(Refusal::kMalformed, DataLoss("a malformed hello"));
  }
  if (key_ != nullptr && (body[0] & kHasKey) == 0) {
    return Refuse(Refusal::kNoKey, Unauthenticated("the peer has no job key (TFJOB_KEY)"));
  }
  purpose_ = static_cast<Purpose>(body[1]);
  transcript_ = reader_.bytes();
  output_ = HelloHeader(kChallenge, 1 + kNonceBytes);
  output_ += FlagsOf(key_);
  output_ += BytesOf(nonce_);
  transcript_ += output_;
  opened_ = true;
  return OkStatus();
}

Status ListenerHello::OnClaims() {
  const auto body = Unseal(key_, kCallerLabel, transcript_, reader_);
  if (reader_.type() != kClaims || (body && body->size() > kMaxClaimBytes)) {
    return Refuse(Refusal::kMalformed, DataLoss("a malformed hello"));
  }
  if (!body) {
    return Refuse(Refusal::kWrongProof,
                  Unauthenticated("the peer cannot prove the job's key: it has another one, or "
                                  "repeats what another peer said"));
  }
  Status verdict = OkStatus();
  if (purpose_ != Purpose::kGrpc && purpose_ != Purpose::kData) {
    verdict = Unimplemented("refused: this task takes no connections for purpose ",
                            static_cast<int>(purpose_));
  } else {
    verdict = (*check_)(*body, purpose_);
  }
  transcript_ += reader_.bytes();
  if (!verdict.ok()) {
    std::string denial(1, static_cast<char>(verdict.code()));
    denial += Message(verdict).substr(0, kMaxDenialBytes);
    output_ = Seal(key_, kListenerLabel, transcript_, kDenial, denial);
    return verdict;
  }
  output_ = Seal(key_, kListenerLabel, transcript_, kWelcome, *claims_);
  peer_claims_ = *body;
  done_ = true;
  return OkStatus();
}

}  // namespace tfjob::wire
