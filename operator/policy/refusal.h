// Reports in a job's condition that the server refuses its pods (a quota, an admission webhook, an
// invalid template), as long as nothing of the job runs.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// While objects are refused and the job has not got beyond Created, the condition Created says why.
// Once all pods exist, or the job runs, the original condition is restored.
void WriteRefusal(Draft& draft);

}  // namespace tfjob::policy
