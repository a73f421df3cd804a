#include "runtime/cmd/verb.h"

namespace tfjob::cmd {

std::vector<std::unique_ptr<Verb>> Verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  verbs.push_back(MakePredictVerb());
  verbs.push_back(MakeEvaluateVerb());
  verbs.push_back(MakeExportVerb());
  verbs.push_back(MakeSummaryVerb());
  verbs.push_back(MakeDataVerb());
  return verbs;
}

}  // namespace tfjob::cmd
