#include "operator/kube/config/cluster_config.h"

#include "runtime/base/file.h"

namespace tfjob::kube {

StatusOr<std::string> PemSource::Read() const {
  if (!data.empty() || path.empty()) return data;
  return ReadFile(path);
}

}  // namespace tfjob::kube
