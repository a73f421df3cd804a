// Checks PEM text, so that a malformed certificate causes an error about its file rather than a
// connection error.
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// Returns OK if there is at least one certificate and all of them can be parsed.
Status CheckCertificates(std::string_view pem);
// Checks a certificate chain and the private key of its first certificate. An encrypted key is
// an error.
Status CheckCertificatePair(const CertificatePair& pair);

}  // namespace tfjob::kube
