// Generates docs/training.schema.json, and the table of keys in docs/training-file.md, from the
// table in keys.cc.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/config/schema.h"

namespace {

tfjob::Status WriteDocs(const std::string& folder) {
  const std::string page = folder + "/training-file.md";
  ASSIGN_OR_RETURN(std::string markdown, tfjob::ReadFile(page));
  ASSIGN_OR_RETURN(std::string written, tfjob::config::WithKeyTable(markdown));
  RETURN_IF_ERROR(tfjob::WriteFileAtomically(page, written));
  const std::string schema = tfjob::PrintJsonIndented(tfjob::config::TrainingSchema()) + "\n";
  return tfjob::WriteFileAtomically(folder + "/training.schema.json", schema);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_docs DOCS_FOLDER\n");
    return 2;
  }
  const tfjob::Status status = WriteDocs(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
