// Reads and updates status.conditions. The order of the entries and their changes to False are
// API: clients read the type of the last entry.
#pragma once

#include <string_view>

#include "operator/api/tfjob.h"

namespace tfjob::api {

// Returns the condition of that type, whatever its status, or nullptr.
const Condition* Find(const TFJobStatus& status, ConditionType type);
// Returns whether a condition of that type exists and is True.
bool IsTrue(const TFJobStatus& status, ConditionType type);
bool IsSucceeded(const TFJobStatus& status);
bool IsFailed(const TFJobStatus& status);
// True if the job is Succeeded or Failed. Such a job never changes again.
bool IsFinished(const TFJobStatus& status);

// Sets one condition and returns whether the list changed.
//  1. A finished job is left unchanged (the reference let Failed follow Succeeded).
//  2. If the type is present with the same status and reason, nothing changes, not even
//     the message.
//  3. If the type is present with the same status and another reason, lastTransitionTime is kept.
//  4. Other entries of the type are removed. Restarting removes Running, and Running removes
//     Restarting. Succeeded and Failed set an existing Running to False, at its position and with
//     its reason, message and times. The new condition is appended last.
// Times are truncated to seconds, as they are stored.
bool SetCondition(TFJobStatus& status, ConditionType type, bool value, std::string_view reason,
                  std::string_view message, Time now);

}  // namespace tfjob::api
