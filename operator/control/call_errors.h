// Classifies the errors of calls to the server (operator/client/client.h) by the way in which the
// control loop handles them. Pure.
#pragma once

#include "runtime/base/status.h"

namespace tfjob::control {

// Returns true if the server refused the call for a reason that users should see. Internal counts
// as a refusal, because it may come from an admission webhook that always fails. After Internal,
// the server may nevertheless have executed the call.
bool IsRefusal(const Status& error);

// Returns true if the server may have executed the call.
bool MayHaveBeenExecuted(const Status& error);

// Returns true if the same call may succeed later.
bool IsTransient(const Status& error);

// Returns true if the object is gone or now belongs to another controller. In both cases, the watch
// will report this.
bool IsGoneOrTaken(const Status& error);

// Turns Aborted into Unavailable and returns any other error unchanged. Aborted would suggest a
// conflict over the job itself. In this call, however, it means that the server's own writes
// conflicted, for example those to a quota.
Status WithoutConflict(const Status& error);

}  // namespace tfjob::control
