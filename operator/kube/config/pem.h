// Checks of PEM text, so that a broken certificate is an error of the file that it stands in and not
// of a connection.
#pragma once

#include <string>
#include <string_view>

#include "operator/kube/config/credentials.h"
#include "runtime/base/status.h"

namespace tfjob::kube {

// At least one certificate, all of them readable.
Status CheckCertificates(std::string_view pem);
// A certificate chain and the private key of its first certificate. Keys with a passphrase are
// refused.
Status CheckCertificatePair(const CertificatePair& pair);

}  // namespace tfjob::kube
