// Which events a look tells: each cause once. Most come with a change of status, which is seen in
// one look only; the others are standing (verdict.h).
#pragma once

#include <vector>

#include "operator/policy/draft.h"
#include "operator/policy/rules/restarting.h"

namespace tfjob::policy {

// "Pod: ns.x exited with code 1", when the code is known.
void TellExit(const objects::Pod& pod, Draft& draft);

// The exits that are news at the end: of failures that were not tolerated before, or would have
// been restarted.
void TellExitsAtEnd(Draft& draft);

// Each exit, and one TFJobRestarting for each type that restarts in this look (one more if pods of
// it vanished).
void TellRestarts(const std::vector<Restarted>& restarts, Draft& draft);

// What changes nothing and is worth telling: pods that do not get on, and failures that are
// tolerated.
void TellOfReplicas(Draft& draft);

}  // namespace tfjob::policy
