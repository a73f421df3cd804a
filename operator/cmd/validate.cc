#include "operator/cmd/validate.h"

#include <ostream>

#include "operator/manifest/manifest.h"

namespace tfjob::cmd {

int Validate(const ValidateOptions& options, Console& console) {
  int code = kSucceeded;
  for (const std::string& file : options.files) {
    const auto text = ReadInput(file, console);
    if (!text.ok()) {
      PrintError(console, text.status());
      code = kBadInput;
      continue;
    }
    const manifest::ManifestReport report = manifest::CheckManifest(*text, InputName(file));
    console.out << manifest::Print(report, InputName(file));
    if (!report.ok()) code = kBadInput;
  }
  return code;
}

}  // namespace tfjob::cmd
