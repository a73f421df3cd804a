// Parses PEM text into owning pointers to OpenSSL objects. Do not include this file in widely used
// headers, because OpenSSL's headers are large.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

template <auto Free>
struct OpenSslDeleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using X509Certificate = std::unique_ptr<X509, OpenSslDeleter<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, OpenSslDeleter<EVP_PKEY_free>>;

// Returns the reason for OpenSSL's last error in this thread, and clears the thread's error queue.
std::string TakeOpenSslError();

// Returns one or more certificates, in the order in which the text contains them. Returns
// InvalidArgument if there is no certificate or if one is malformed.
StatusOr<std::vector<X509Certificate>> ParseCertificates(std::string_view pem);

struct ParsedPair {
  std::vector<X509Certificate> chain;  // leaf first
  PrivateKey key;                      // the leaf's
};
// Parses a certificate chain and its key. Never prompts for a passphrase: an encrypted key is an
// error.
StatusOr<ParsedPair> ParseCertificatePair(const CertificatePair& pair);

}  // namespace tfjob::kube
