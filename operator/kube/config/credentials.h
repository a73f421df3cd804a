// Provides the credentials for requests to an API server.
//
// For each request, the caller first calls Get(). It then sends the request with the returned
// Authorization header, on a connection that uses the returned client certificate. If the server
// answers 401, the caller passes the same credentials to Unauthorized() and may retry once with the
// result of a new Get().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

// Contains a client certificate and its key, both as PEM. Never print these.
struct CertificatePair {
  std::string certificate;  // the chain, leaf first
  std::string key;

  bool operator==(const CertificatePair&) const = default;
};

// Contains the credentials for a request.
struct RequestCredentials {
  // The value of the Authorization header ("Bearer …", "Basic …"); "" if there is no such header.
  std::string authorization;
  // The client certificate; nullptr if there is none. The pointer changes only if the certificate
  // does. If it changes, stop using connections with the old certificate (drop the HTTP client).
  std::shared_ptr<const CertificatePair> certificate;
  // Identifies the refresh that produced these credentials. Unauthorized() uses it.
  uint64_t version = 0;
};

// Provides the credentials of one user. Thread-safe.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // Returns the credentials to use now. Usually returns immediately, but may block to read a file
  // (normally at most once every 50 s) or to run the exec plugin of a kubeconfig (for seconds, with
  // a timeout). Call this on the thread that sends the request, never on a network thread. If the
  // credentials cannot be renewed, continues to return the previous credentials until they expire.
  // After that, or if there are no previous credentials, returns Unauthenticated with the name of
  // the file or command.
  virtual StatusOr<RequestCredentials> Get() = 0;
  // Reports that the server answered 401 to a request with these credentials. The next Get() renews
  // them, but only once per version, however many callers report it. Returns immediately.
  virtual void Unauthorized(const RequestCredentials& used) = 0;
};

// Returns credentials for anonymous requests.
std::shared_ptr<Credentials> NoCredentials();
// Returns true if the text can be a token in the Authorization header: it is not empty and contains
// only visible ASCII characters without spaces.
bool IsToken(std::string_view text);

}  // namespace tfjob::kube
