// Our side of TLS connections: the authorities that we trust and the certificate that we show,
// parsed from text into OpenSSL objects once and shared by all connections.
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

// Thread-safe. Must outlive the connections that it was applied to.
class TlsSettings {
 public:
  // Empty `authority`: the system's store. InvalidArgument if a PEM does not parse or if
  // certificate and key do not match. `certificate` may be null.
  static StatusOr<std::shared_ptr<TlsSettings>> Create(
      PemSource authority, std::shared_ptr<const CertificatePair> certificate);
  ~TlsSettings();

  // Prepares a fresh SSL_CTX: at least TLS 1.2, trusts only the authority, shows the certificate.
  // An authority in a file is read again and used if it has changed; if it cannot be read, its last
  // content stays in use.
  Status Apply(ssl_ctx_st* context);

  // Why the latest handshake that did not trust the server failed: "unable to get local issuer
  // certificate". "" if there was none since the last call.
  std::string TakeVerifyError();

 private:
  struct Impl;
  explicit TlsSettings(std::unique_ptr<Impl> impl);

  Status LoadAuthority();
  static int Verify(x509_store_ctx_st* context, void* settings);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace tfjob::kube
