#include "operator/cli/validate.h"

#include <ostream>

#include "operator/manifest/manifest.h"

namespace tfjob::cli {

int Validate(const ValidateOptions& options, view::Console& console) {
  int code = view::kSucceeded;
  for (const std::string& file : options.files) {
    const auto text = view::ReadInput(file, console);
    if (!text.ok()) {
      view::PrintError(console, text.status());
      code = view::kBadInput;
      continue;
    }
    const manifest::ManifestReport report = manifest::CheckManifest(*text, view::InputName(file));
    console.out << manifest::Print(report, view::InputName(file));
    if (!report.ok()) code = view::kBadInput;
  }
  return code;
}

}  // namespace tfjob::cli
