// Writes the generated headers and sources of this package.
#include <cstdio>

#include "runtime/api/generate/generate.h"
#include "runtime/base/file.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_headers FOLDER\n");
    return 2;
  }
  for (const tfjob::api::GeneratedFile& file : tfjob::api::GeneratedFiles()) {
    const tfjob::Status status =
        tfjob::WriteFileAtomically(std::string(argv[1]) + "/" + file.name, file.text);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
