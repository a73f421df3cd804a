#include "operator/kube/config/token_file.h"

#include "absl/strings/ascii.h"
#include "operator/kube/config/pem.h"
#include "runtime/base/file.h"

namespace tfjob::kube {
namespace {

// kTokenPeriod is one minute minus a margin of ten seconds, as in client-go.
constexpr Duration kTokenPeriod = 50s;
constexpr Duration kCertificatePeriod = 5min;

}  // namespace

TokenFile::TokenFile(std::string path, std::string initial, Clock& clock)
    : path_(std::move(path)), clock_(clock), token_{std::move(initial), 0} {}

StatusOr<std::string> TokenFile::Read() const {
  StatusOr<std::string> content = ReadFile(path_);
  if (!content.ok()) return Unauthenticated("the token: ", Message(content.status()));
  std::string text(absl::StripAsciiWhitespace(*content));
  if (text.empty()) return Unauthenticated(path_, ": expected a token, got an empty file");
  if (!IsToken(text)) {
    return Unauthenticated(path_,
                           ": expected a token, got spaces or other characters not allowed in"
                           " a token");
  }
  return text;
}

StatusOr<TokenFile::Token> TokenFile::Get() {
  MutexLock lock(mutex_);
  const Duration now = clock_.Monotonic();
  if (fresh_until_ && now < *fresh_until_) return token_;
  StatusOr<std::string> text = Read();
  if (!text.ok()) {
    if (token_.text.empty()) return text.status();
    return token_;
  }
  token_ = {*std::move(text), token_.version + 1};
  fresh_until_ = now + kTokenPeriod;
  return token_;
}

void TokenFile::Refuse(uint64_t version) {
  MutexLock lock(mutex_);
  if (version == token_.version) fresh_until_.reset();
}

CertificateFiles::CertificateFiles(PemSource certificate, PemSource key, Clock& clock)
    : certificate_(std::move(certificate)), key_(std::move(key)), clock_(clock) {}

StatusOr<CertificatePair> CertificateFiles::Read() const {
  CertificatePair pair;
  ASSIGN_OR_RETURN(pair.certificate, certificate_.Read());
  ASSIGN_OR_RETURN(pair.key, key_.Read());
  const std::string& path = certificate_.path.empty() ? key_.path : certificate_.path;
  Status checked = CheckCertificatePair(pair);
  if (!checked.ok() && !path.empty()) checked = Annotate(checked, path);
  RETURN_IF_ERROR(checked);
  return pair;
}

StatusOr<std::shared_ptr<const CertificatePair>> CertificateFiles::Get() {
  MutexLock lock(mutex_);
  const Duration now = clock_.Monotonic();
  if (pair_ != nullptr && now < fresh_until_) return pair_;
  fresh_until_ = now + kCertificatePeriod;
  StatusOr<CertificatePair> pair = Read();
  if (!pair.ok()) {
    if (pair_ != nullptr) return pair_;
    return Unauthenticated("the client certificate: ", Message(pair.status()));
  }
  if (pair_ == nullptr || !(*pair_ == *pair)) {
    pair_ = std::make_shared<const CertificatePair>(*std::move(pair));
  }
  return pair_;
}

}  // namespace tfjob::kube
