// tfjob validate FILE…: prints the errors and warnings for each file, followed by one summary line.
#include <ostream>

#include "operator/cli/local_verbs.h"
#include "operator/manifest/manifest.h"
#include "operator/view/printable.h"

namespace tfjob::cli {
namespace {

class ValidateVerb : public Verb {
 public:
  ValidateVerb() : Verb("validate", "Check manifests and print every error with its path") {}

  void AddFlags(FlagSet& flags) override {
    flags.Repeated("FILE", files_, "Manifests; - is standard input")
        .Require()
        .Complete(CompleteWith::kFiles);
  }
  int Run(const Invocation& invocation) override;

 private:
  std::vector<std::string> files_;
};

int ValidateVerb::Run(const Invocation& invocation) {
  view::Console& console = invocation.console;
  int code = view::kSucceeded;
  for (const std::string& file : files_) {
    const auto text = view::ReadInput(file, console);
    if (!text.ok()) {
      view::PrintError(console, text.status());
      code = view::kBadInput;
      continue;
    }
    const manifest::ManifestReport report = manifest::CheckManifest(*text, view::InputName(file));
    console.out << view::PrintableText(manifest::Print(report, view::InputName(file)));
    if (!report.ok()) code = view::kBadInput;
  }
  return code;
}

}  // namespace

std::unique_ptr<Verb> MakeValidateVerb() {
  return std::make_unique<ValidateVerb>();
}

}  // namespace tfjob::cli
