#include "operator/kube/pem.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace tfjob::kube {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;

constexpr size_t kMaxPem = 8 << 20;

Bio Open(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The reason of OpenSSL's last error; empties its queue.
std::string LastError() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unreadable" : reason;
}

// Never asks for a passphrase.
int NoPassphrase(char*, int, int, void*) {
  return -1;
}

// The first certificate; the rest is read too.
StatusOr<Certificate> ReadCertificates(std::string_view pem) {
  if (pem.size() > kMaxPem) return InvalidArgument("more than 8 MiB of certificates");
  ERR_clear_error();
  const Bio bio = Open(pem);
  Certificate first;
  while (true) {
    Certificate next(PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr));
    if (next == nullptr) break;
    if (first == nullptr) first = std::move(next);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = LastError();
  if (!at_end) return InvalidArgument("expected PEM certificates, got a broken one: ", error);
  if (first == nullptr) {
    return InvalidArgument("expected a PEM certificate (-----BEGIN CERTIFICATE-----), got none");
  }
  return first;
}

}  // namespace

Status CheckCertificates(std::string_view pem) {
  return ReadCertificates(pem).status();
}

Status CheckCertificatePair(const CertificatePair& pair) {
  ASSIGN_OR_RETURN(const Certificate certificate, ReadCertificates(pair.certificate));
  if (pair.key.size() > kMaxPem) return InvalidArgument("more than 8 MiB of key");
  const Bio bio = Open(pair.key);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key == nullptr) {
    return InvalidArgument("expected a PEM private key without a passphrase: ", LastError());
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return InvalidArgument("the client key does not belong to the client certificate");
  }
  return OkStatus();
}

}  // namespace tfjob::kube
