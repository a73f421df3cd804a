// PEM text → OpenSSL's objects, each freed by its owner. Not for headers that others include:
// OpenSSL's are heavy.
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

// The reason of OpenSSL's last error in this thread; empties its queue.
std::string TakeOpenSslError();

// In the text's order, at least one. InvalidArgument when one of them is broken.
StatusOr<std::vector<X509Certificate>> ParseCertificates(std::string_view pem);

struct ParsedPair {
  std::vector<X509Certificate> chain;  // leaf first
  PrivateKey key;                      // the leaf's
};
// Never asks for a passphrase: a key that has one is refused.
StatusOr<ParsedPair> ParseCertificatePair(const CertificatePair& pair);

}  // namespace tfjob::kube
