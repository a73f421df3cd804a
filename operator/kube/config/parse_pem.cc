#include "operator/kube/config/parse_pem.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

namespace tfjob::kube {
namespace {

using Bio = std::unique_ptr<BIO, OpenSslDeleter<BIO_free>>;

constexpr size_t kMaxPem = 8 << 20;

Bio Open(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Prevents OpenSSL from prompting for a passphrase on the terminal.
int NoPassphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

std::string TakeOpenSslError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unreadable" : reason;
}

StatusOr<std::vector<X509Certificate>> ParseCertificates(std::string_view pem) {
  if (pem.size() > kMaxPem) return InvalidArgument("more than 8 MiB of certificates");
  ERR_clear_error();
  const Bio bio = Open(pem);
  std::vector<X509Certificate> certificates;
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)) {
    certificates.emplace_back(next);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = TakeOpenSslError();
  if (!at_end) return InvalidArgument("expected PEM certificates, got a broken one: ", error);
  if (certificates.empty()) {
    return InvalidArgument("expected a PEM certificate (-----BEGIN CERTIFICATE-----), got none");
  }
  return certificates;
}

StatusOr<ParsedPair> ParseCertificatePair(const CertificatePair& pair) {
  ParsedPair parsed;
  ASSIGN_OR_RETURN(parsed.chain, ParseCertificates(pair.certificate));
  if (pair.key.size() > kMaxPem) return InvalidArgument("more than 8 MiB of key");
  const Bio bio = Open(pair.key);
  parsed.key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (parsed.key == nullptr) {
    return InvalidArgument("expected a PEM private key without a passphrase: ", TakeOpenSslError());
  }
  if (X509_check_private_key(parsed.chain[0].get(), parsed.key.get()) != 1) {
    ERR_clear_error();
    return InvalidArgument("the client key does not belong to the client certificate");
  }
  return parsed;
}

}  // namespace tfjob::kube
