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

// Returns Unavailable instead of Aborted, any other error as it is. Users know Aborted as a conflict
// of the job itself; this one lies between the server's own writes, such as those to a quota.
Status WithoutConflict(const Status& error);

}  // namespace tfjob::control
