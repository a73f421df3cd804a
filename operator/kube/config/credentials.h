// Who we are to an API server: what every request carries so that the server knows us.
//
// A request takes Get() first and sends what it gives: the Authorization header, and a connection
// that was made with the client certificate. After a 401 it hands the same value to Unauthorized()
// and may try once more with a new Get().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::kube {

// A client certificate with its key, both PEM. Never printed.
struct CertificatePair {
  std::string certificate;  // the chain, leaf first
  std::string key;

  bool operator==(const CertificatePair&) const = default;
};

// What one request uses.
struct RequestCredentials {
  // The value of the header Authorization ("Bearer …", "Basic …"); "": no such header.
  std::string authorization;
  // nullptr: none. The same pointer as long as the certificate is the same: when it is another one
  // than a connection was made with, that connection is to be closed (drop the http client).
  std::shared_ptr<const CertificatePair> certificate;
  // Which refresh it comes from; for Unauthorized().
  uint64_t version = 0;
};

// Thread-safe.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // What to use now. Usually at once; it may read a file (at most once a minute) or run the exec
  // plugin of a kubeconfig (seconds, with a timeout), and then blocks: call it on the thread that
  // wants the request, never on the network's. An error is Unauthenticated and names file or
  // command; once there were good credentials, those are given as long as they have not expired.
  virtual StatusOr<RequestCredentials> Get() = 0;
  // The server answered 401 to a request that used these. They are renewed at the next Get(), once
  // for each version, whoever and however many report it. Returns at once.
  virtual void Unauthorized(const RequestCredentials& used) = 0;
};

// Of anonymous requests.
std::shared_ptr<Credentials> NoCredentials();
// Whether the text can stand in the header Authorization as a token: visible ASCII, no spaces.
bool IsToken(std::string_view text);

}  // namespace tfjob::kube
