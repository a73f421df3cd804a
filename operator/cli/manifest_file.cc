#include "operator/cli/local_verbs.h"

namespace tfjob::cli {

void AddManifestFile(FlagSet& flags, std::string& file) {
  const Flag& argument =
      flags.Text("FILE", file, "Manifest file; - is standard input").Complete(CompleteWith::kFiles);
  flags.Text("-f,--filename", file, "Same as FILE")
      .Exclude(argument)
      .Complete(CompleteWith::kFiles);
}

Status CheckManifestFile(const Verb& verb, const std::string& file) {
  if (!file.empty()) return OkStatus();
  return InvalidArgument(verb.name(), ": no manifest given: name a FILE, or - for stdin");
}

}  // namespace tfjob::cli
