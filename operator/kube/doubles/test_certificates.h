// Certificates for tests: a throw-away authority and the certificates that it signs, all as PEM.
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

  // The authority's own certificate.
  const std::string& certificate() const { return certificate_; }
  // For a server: `names` are host names or addresses ("127.0.0.1").
  CertificatePair IssueServer(const std::vector<std::string>& names);
  // For a client of that name.
  CertificatePair IssueClient(const std::string& name);

 private:
  struct Impl;
  Impl* const impl_;
  std::string certificate_;
};

}  // namespace tfjob::kube
