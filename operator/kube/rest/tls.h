// Configures the client's side of TLS connections: the trusted authorities and the client
// certificate. They are parsed once, into OpenSSL objects that all connections share.
#pragma once

#include <memory>
#include <string>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/credentials.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

struct ssl_ctx_st;
struct x509_store_ctx_st;

namespace tfjob::kube {

// Contains the parsed settings. Thread-safe. Must outlive the connections that they were applied
// to.
class TlsSettings {
 public:
  // If `authority` is empty, uses the system's store. `certificate` may be null. Returns
  // InvalidArgument if PEM text cannot be parsed, or if the certificate and the key do not match.
  static StatusOr<std::shared_ptr<TlsSettings>> Create(
      PemSource authority, std::shared_ptr<const CertificatePair> certificate);
  ~TlsSettings();

  // Prepares a new SSL_CTX: requires at least TLS 1.2, trusts only the authority, and presents the
  // certificate. If the authority is in a file, reads the file again. If the file cannot be read,
  // its last content remains in use.
  Status Apply(ssl_ctx_st* context);

  // Returns why a server's certificate was last rejected, such as "unable to get local issuer
  // certificate"; "" if none has been rejected since the last call.
  std::string TakeVerifyError();

 private:
  struct Impl;
  explicit TlsSettings(std::unique_ptr<Impl> impl);

  Status LoadAuthority();
  static int Verify(x509_store_ctx_st* context, void* settings);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace tfjob::kube
