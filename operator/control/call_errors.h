// Sorts the errors of calls (operator/client/client.h) by what the loop makes of them. Pure.
#pragma once

#include "runtime/base/status.h"

namespace tfjob::control {

// Returns true for errors with a reason from the server that a user should read. Internal is one of
// them once it is known that the call was not carried out: a failing admission webhook may fail
// forever.
bool IsRefusal(const Status& error);

// Returns true if the server may have carried out the call.
bool MayHaveBeenExecuted(const Status& error);

// Returns true if the same call may succeed later.
bool IsTransient(const Status& error);

// Returns true if the object is gone, or belongs to another controller by now; the watch will
// report it.
bool IsGoneOrTaken(const Status& error);

// Turns Aborted into Unavailable and returns any other error unchanged. To users, Aborted means a
// conflict over the job itself; here it is one between the server's own writes, such as to a quota.
Status WithoutConflict(const Status& error);

}  // namespace tfjob::control
