// Provides static credentials: a token, a user with a password, or a client certificate. The token
// and the certificate may be in files.
#pragma once

#include <memory>
#include <string>

#include "operator/kube/config/cluster_config.h"
#include "operator/kube/config/credentials.h"
#include "runtime/base/clock.h"

namespace tfjob::kube {

struct UserCredentialsOptions {
  std::string token;
  std::string token_file;  // takes precedence over token, which is used until the file can be read
  std::string username;    // used with `password` for basic authentication, if there is no token
  std::string password;
  PemSource client_certificate;
  PemSource client_key;
  Clock* clock = &RealClock();
};

std::shared_ptr<Credentials> UserCredentials(UserCredentialsOptions options);

}  // namespace tfjob::kube
