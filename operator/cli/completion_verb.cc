// tfjob completion: prints the completion script for a shell.
#include <ostream>

#include "operator/cli/completion.h"
#include "operator/cli/local_verbs.h"

namespace tfjob::cli {
namespace {

class CompletionVerb : public Verb {
 public:
  CompletionVerb() : Verb("completion", "Print a shell completion script for this program") {}

  void AddFlags(FlagSet& flags) override {
    flags.Text("SHELL", shell_, "bash, zsh or fish")
        .AllowOnly({"bash", "zsh", "fish"})
        .Require()
        .CompleteWords({"bash", "fish", "zsh"});
  }
  int Run(const Invocation& invocation) override {
    invocation.console.out << CompletionScript(shell_);
    return view::kSucceeded;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Verb> MakeCompletionVerb() {
  return std::make_unique<CompletionVerb>();
}

}  // namespace tfjob::cli
