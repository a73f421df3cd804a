// Lists the verbs that need no cluster. Each function is defined in the file of its verb.
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

// Appends all of these verbs, in the order in which the help lists them.
inline void AddLocalVerbs(std::vector<std::unique_ptr<Verb>>& verbs) {
  for (const auto make :
       {MakeRunVerb, MakeExplainVerb, MakeValidateVerb, MakeCompletionVerb, MakeVersionVerb}) {
    verbs.push_back(make());
  }
}

// Adds the FILE argument and the -f flag, both of which set `file`. The user may give only one of
// them.
void AddManifestFile(FlagSet& flags, std::string& file);
// Returns InvalidArgument if the verb was given neither FILE nor -f.
Status CheckManifestFile(const Verb& verb, const std::string& file);

}  // namespace tfjob::cli
