// While a job is not running, reports in a condition that the server refuses the job's pods
// (because of a quota, an admission webhook or an invalid template).
#pragma once

#include "operator/policy/draft.h"

namespace tfjob::policy {

// Changes the Created condition if it is the job's latest condition, and the server refuses the
// job's objects or draft.obstacle prevents their creation. The reason becomes FailedCreatePod, and
// the message contains the refusal or the obstacle. Restores the original reason and message once
// all pods exist or the job runs.
void WriteRefusal(Draft& draft);

}  // namespace tfjob::policy
