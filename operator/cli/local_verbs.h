// The list of verbs that need no cluster. Each function is defined in its verb's file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/cli/verbs/verb.h"

namespace tfjob::cli {

std::unique_ptr<Verb> MakeRunVerb();
std::unique_ptr<Verb> MakeExplainVerb();
std::unique_ptr<Verb> MakeValidateVerb();
std::unique_ptr<Verb> MakeCompletionVerb();
std::unique_ptr<Verb> MakeVersionVerb();

// Appends all of them, in the order of the help.
inline void AddLocalVerbs(std::vector<std::unique_ptr<Verb>>& verbs) {
  for (const auto make :
       {MakeRunVerb, MakeExplainVerb, MakeValidateVerb, MakeCompletionVerb, MakeVersionVerb}) {
    verbs.push_back(make());
  }
}

// Adds the manifest as the argument FILE or the flag -f, but not both.
void AddManifestFile(FlagSet& flags, std::string& file);
// Returns InvalidArgument if neither is given to the verb.
Status CheckManifestFile(const Verb& verb, const std::string& file);

}  // namespace tfjob::cli
