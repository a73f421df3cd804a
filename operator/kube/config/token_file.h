// Reads credentials from files that are renewed in place (bearer tokens and client certificates),
// with client-go's rules. Kubernetes swaps such files through a symbolic link (..data), so they are
// always opened by their path.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/credentials.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// A bearer token in a file. Thread-safe.
class TokenFile {
 public:
  // `initial` is used until the file can be read; may be "".
  TokenFile(std::string path, std::string initial, Clock& clock);

  struct Token {
    std::string text;
    uint64_t version = 0;  // grows with every read
  };

  // Returns the token, read again if it is older than 50 s (one minute minus 10 s of margin) or was
  // refused. White space around it is removed. If the file cannot be read, is empty or does not
  // hold a token, the previous token stays valid; if there is none, the error is Unauthenticated
  // and names the path.
  StatusOr<Token> Get();
  // Reports that a server refused this version: the next Get() reads the file, once per version.
  void Refuse(uint64_t version);

 private:
  StatusOr<std::string> Read() const;

  const std::string path_;
  Clock& clock_;
  Mutex mutex_;
  Token token_ ABSL_GUARDED_BY(mutex_);
  std::optional<Duration> fresh_until_ ABSL_GUARDED_BY(mutex_);
};

// A client certificate and its key, at least one of them in a file. Thread-safe.
class CertificateFiles {
 public:
  CertificateFiles(PemSource certificate, PemSource key, Clock& clock);

  // Returns the pair, read again every 5 minutes; the pointer stays the same while the contents do.
  // If the files cannot be read or do not match (one is replaced before the other), the old pair
  // stays valid; if there is none, the error is Unauthenticated and names the path.
  StatusOr<std::shared_ptr<const CertificatePair>> Get();

 private:
  StatusOr<CertificatePair> Read() const;

  const PemSource certificate_;
  const PemSource key_;
  Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<const CertificatePair> pair_ ABSL_GUARDED_BY(mutex_);
  Duration fresh_until_ ABSL_GUARDED_BY(mutex_){0};
};

}  // namespace tfjob::kube
