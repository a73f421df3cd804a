#include "operator/kube/config/pem.h"

#include "operator/kube/config/parse_pem.h"

namespace tfjob::kube {

Status CheckCertificates(std::string_view pem) {
  return ParseCertificates(pem).status();
}

Status CheckCertificatePair(const CertificatePair& pair) {
  return ParseCertificatePair(pair).status();
}

}  // namespace tfjob::kube
