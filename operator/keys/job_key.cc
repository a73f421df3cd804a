#include "operator/keys/job_key.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>

#include "absl/strings/escaping.h"
#include "runtime/base/check.h"

namespace tfjob::keys {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kJobKeyContext = "tfjob.dev/job-key/v1\0"sv;
constexpr std::string_view kFingerprintContext = "tfjob.dev/key-fingerprint/v1";
constexpr size_t kFingerprintDigits = 8;
constexpr size_t kSecretBytes = 32;

std::string HexHmac(std::string_view secret, const std::string& message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  const unsigned char* made = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                   reinterpret_cast<const unsigned char*>(message.data()),
                                   message.size(), digest.data(), &size);
  ENFORCE(made != nullptr, "HMAC-SHA256 is not available in libcrypto");
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace

std::string DeriveJobKey(std::string_view secret, std::string_view job_uid) {
  return HexHmac(secret, StrCat(kJobKeyContext, job_uid));
}

std::string Fingerprint(std::string_view secret) {
  return HexHmac(secret, std::string(kFingerprintContext)).substr(0, kFingerprintDigits);
}

StatusOr<std::string> RandomSecret() {
  std::string secret(kSecretBytes, '\0');
  const auto bytes = reinterpret_cast<unsigned char*>(secret.data());
  if (RAND_bytes(bytes, static_cast<int>(secret.size())) != 1) {
    return Unavailable("libcrypto has no random bytes for a key");
  }
  return secret;
}

}  // namespace tfjob::keys
