#include "runtime/wire/job_key.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <string>

#include "runtime/base/check.h"
#include "runtime/base/env.h"

namespace tfjob::wire {
namespace {

constexpr char kKeyVariable[] = "TFJOB_KEY";

// Returns the value of a lower-case hexadecimal digit, or -1 for any other character.
int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

StatusOr<JobKey> JobKey::Parse(std::string_view hex) {
  JobKey key;
  if (hex.size() != 2 * key.bytes_.size()) {
    return InvalidArgument("expected ", 2 * key.bytes_.size(), " hexadecimal digits, got ",
                           hex.size(), " characters");
  }
  for (size_t i = 0; i < key.bytes_.size(); ++i) {
    const int high = DigitOf(hex[2 * i]), low = DigitOf(hex[2 * i + 1]);
    if (high < 0 || low < 0) {
      return InvalidArgument("expected ", hex.size(),
                             " hexadecimal digits (0-9, a-f), got another character at position ",
                             2 * i + (high < 0 ? 0 : 1));
    }
    key.bytes_[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return key;
}

JobKey::~JobKey() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

Proof JobKey::Sign(std::initializer_list<std::string_view> parts) const {
  // Join the parts, which have at most a few kilobytes: a single call is simpler than an
  // incremental computation.
  std::string text;
  for (std::string_view part : parts) text += part;
  Proof proof;
  unsigned int length = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), proof.data(), &length);
  ENFORCE(done != nullptr && length == proof.size(), "HMAC-SHA256");
  return proof;
}

bool Equal(const Proof& left, std::string_view right) {
  return right.size() == left.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

Nonce NewNonce() {
  Nonce nonce;
  ENFORCE(RAND_bytes(nonce.data(), static_cast<int>(nonce.size())) == 1, "random bytes");
  return nonce;
}

StatusOr<std::optional<JobKey>> TakeJobKey() {
  std::optional<std::string> text = TakeEnv(kKeyVariable);
  if (!text) return std::optional<JobKey>();
  StatusOr<JobKey> key = JobKey::Parse(*text);
  OPENSSL_cleanse(text->data(), text->size());
  if (!key.ok()) return Annotate(key.status(), kKeyVariable);
  return std::optional<JobKey>(*key);
}

}  // namespace tfjob::wire
