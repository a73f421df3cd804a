// Writes the files that are generated from the table of fields and the rules: the
// CustomResourceDefinition (one copy for kubectl, one for the chart) and the API reference.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "operator/crd/crd.h"
#include "runtime/base/file.h"

namespace {

using tfjob::WriteFileAtomically;

tfjob::Status Write(const std::string& root) {
  const std::string crd = tfjob::crd::CrdYaml();
  RETURN_IF_ERROR(WriteFileAtomically(root + "/crds/kubeflow.org_tfjobs.yaml", crd));
  RETURN_IF_ERROR(
      WriteFileAtomically(root + "/charts/tfjob-operator/files/kubeflow.org_tfjobs.yaml", crd));
  return WriteFileAtomically(root + "/docs/api.md", tfjob::crd::ApiReference());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write REPOSITORY\n");
    return 2;
  }
  const tfjob::Status status = Write(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
