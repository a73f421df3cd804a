// What our side of a TLS connection trusts and shows: certificates as text → OpenSSL's objects,
// parsed once and shared by all connections.
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
  // `authority` empty: the system's store. InvalidArgument when a PEM does not parse or certificate
  // and key do not belong together. `certificate` may be null.
  static StatusOr<std::shared_ptr<TlsSettings>> Create(
      PemSource authority, std::shared_ptr<const CertificatePair> certificate);
  ~TlsSettings();

  // Prepares a fresh SSL_CTX: at least TLS 1.2, trusting the authority alone, showing the
  // certificate. An authority that is a file is read again, and used when it has changed; when it
  // cannot be read, what it held last stays.
  Status Apply(ssl_ctx_st* context);

  // Why the newest handshake that did not trust the server did not: "unable to get local issuer
  // certificate"; "" when there was none since the last call.
  std::string TakeVerifyError();

 private:
  struct Impl;
  explicit TlsSettings(std::unique_ptr<Impl> impl);

  Status LoadAuthority();
  static int Verify(x509_store_ctx_st* context, void* settings);

  const std::unique_ptr<Impl> impl_;
};

}  // namespace tfjob::kube
