// Checks PEM text, so that a broken certificate is reported as an error of its file and not of
// a connection.
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// Requires at least one certificate, all of them readable.
Status CheckCertificates(std::string_view pem);
// Checks a certificate chain and the private key of its first certificate. Encrypted keys are
// an error.
Status CheckCertificatePair(const CertificatePair& pair);

}  // namespace tfjob::kube
