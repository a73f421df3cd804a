// Creates certificates for tests: a temporary authority and the certificates that it signs, all as
// PEM.
#pragma once

#include <string>
#include <vector>

#include "operator/kube/config/credentials.h"

namespace tfjob::kube {

class TestAuthority {
 public:
  TestAuthority();
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  // Returns the authority's own certificate.
  const std::string& certificate() const { return certificate_; }
  // Issues a certificate for a server. `names` are host names or addresses ("127.0.0.1").
  CertificatePair IssueServer(const std::vector<std::string>& names);
  // Issues a certificate for the client `name`.
  CertificatePair IssueClient(const std::string& name);

 private:
  struct Impl;
  Impl* const impl_;
  std::string certificate_;
};

}  // namespace tfjob::kube
