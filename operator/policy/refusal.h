// Reports in a condition that the server refuses the job's pods (because of a quota, an admission
// webhook or an invalid template), as long as the job is not running.
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// As long as Created is the job's latest condition, and the server refuses its objects, Created
// explains why. Once all pods exist or the job runs, the original Created is restored.
void WriteRefusal(Draft& draft);

}  // namespace tfjob::policy
