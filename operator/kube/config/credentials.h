// Identifies us to an API server.
//
// A request first calls Get() and uses the result: it sends the Authorization header on a
// connection that was made with the client certificate. After a 401 it passes the same value to
// Unauthorized() and may retry once with a new Get().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

// A client certificate with its key, both as PEM. Never printed.
struct CertificatePair {
  std::string certificate;  // the chain, leaf first
  std::string key;

  bool operator==(const CertificatePair&) const = default;
};

// The credentials of one request.
struct RequestCredentials {
  // The value of the Authorization header ("Bearer …", "Basic …"); "": no such header.
  std::string authorization;
  // nullptr: none. The pointer stays the same as long as the certificate does. Close a connection
  // that was made with another certificate (drop the http client).
  std::shared_ptr<const CertificatePair> certificate;
  // The refresh that it comes from; for Unauthorized().
  uint64_t version = 0;
};

// Thread-safe.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // Returns the credentials to use now, usually at once. It may block: it may read a file (at most
  // once a minute) or run the exec plugin of a kubeconfig (seconds, with a timeout). Call it on the
  // thread that makes the request, never on a network thread. Errors are Unauthenticated and name
  // the file or command. Good credentials continue to be returned after an error until they expire.
  virtual StatusOr<RequestCredentials> Get() = 0;
  // Reports that the server answered 401 to a request that used these credentials. The next Get()
  // renews them, once per version, however many callers report it. Returns at once.
  virtual void Unauthorized(const RequestCredentials& used) = 0;
};

// For anonymous requests.
std::shared_ptr<Credentials> NoCredentials();
// True if the text can be a token in the Authorization header: visible ASCII, no spaces.
bool IsToken(std::string_view text);

}  // namespace tfjob::kube
