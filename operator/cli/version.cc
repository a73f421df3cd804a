// tfjob version: prints the version.
#include "runtime/base/version.h"

#include <ostream>

#include "operator/cli/local_verbs.h"

namespace tfjob::cli {
namespace {

class VersionVerb : public Verb {
 public:
  VersionVerb() : Verb("version", "Print the version") {}

  void AddFlags(FlagSet& /*flags*/) override {}
  int Run(const Invocation& invocation) override {
    invocation.console.out << "tfjob " << kVersion << "\n";
    return view::kSucceeded;
  }
};

}  // namespace

std::unique_ptr<Verb> MakeVersionVerb() {
  return std::make_unique<VersionVerb>();
}

}  // namespace tfjob::cli
