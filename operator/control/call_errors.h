// Classifies the errors of calls (operator/client/client.h) by how the control loop treats
// them. Pure.
#pragma once

#include "runtime/base/status.h"

namespace tfjob::control {

// Returns true if the server refused the call with a reason that users should see. This includes
// Internal, provided that the caller knows that the call was not executed, because a failing
// admission webhook may fail forever.
bool IsRefusal(const Status& error);

// Returns true if the server may have executed the call.
bool MayHaveBeenExecuted(const Status& error);

// Returns true if the same call may succeed later.
bool IsTransient(const Status& error);

// Returns true if the object is gone or now belongs to another controller. The watch will
// report it.
bool IsGoneOrTaken(const Status& error);

// Turns Aborted into Unavailable and returns any other error unchanged. To users, Aborted means a
// conflict over the job itself; here it is one between the server's own writes, such as to a quota.
Status WithoutConflict(const Status& error);

}  // namespace tfjob::control
