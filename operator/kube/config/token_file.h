// Reads credentials (bearer tokens and client certificates) from files that are renewed in place,
// following the rules of client-go. Kubernetes replaces such files by changing a symbolic link
// (..data), so each read opens them by their path.
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

// Reads a bearer token from a file. Thread-safe.
class TokenFile {
 public:
  // `initial`, which may be "", is used until the file can be read.
  TokenFile(std::string path, std::string initial, Clock& clock);

  struct Token {
    std::string text;
    uint64_t version = 0;  // incremented with every successful read
  };

  // Returns the token, without surrounding white space. Reads the file again if the token was read
  // more than 50 s ago (one minute minus a margin of 10 s) or was rejected. If the file cannot be
  // read, is empty or does not contain a token, the previous token remains valid. If there is no
  // previous token, returns Unauthenticated with the path.
  StatusOr<Token> Get();
  // Reports that a server rejected this version of the token. The next Get() then reads the file.
  // Ignores a version that is no longer current.
  void Refuse(uint64_t version);

 private:
  StatusOr<std::string> Read() const;

  const std::string path_;
  Clock& clock_;
  Mutex mutex_;
  Token token_ ABSL_GUARDED_BY(mutex_);
  std::optional<Duration> fresh_until_ ABSL_GUARDED_BY(mutex_);
};

// Reads a client certificate and its key, at least one of them from a file. Thread-safe.
class CertificateFiles {
 public:
  CertificateFiles(PemSource certificate, PemSource key, Clock& clock);

  // Returns the pair. Reads the files again every 5 minutes. The pointer changes only if the
  // contents do. If the files cannot be read or do not match (perhaps because one was replaced
  // before the other), the old pair remains valid. If there is no old pair, returns Unauthenticated
  // with the path.
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
