// A job whose pods the server refuses (a quota, an admission webhook, an invalid template) says so in its condition, as long
// as nothing of it runs.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// While objects are refused and the job has not got beyond Created, the condition Created says why; when all pods are there,
// or the job runs, it is as before.
void WriteRefusal(Draft& draft);

}  // namespace tfjob::policy
