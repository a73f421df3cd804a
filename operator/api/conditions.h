// The algebra of status.conditions. Order and flips are API: clients read the type of the last
// entry.
#pragma once

#include <string_view>

#include "operator/api/tfjob.h"

namespace tfjob::api {

// The condition of that type, whatever its status, or nullptr.
const Condition* Find(const TFJobStatus& status, ConditionType type);
// Whether a condition of that type exists and is True.
bool IsTrue(const TFJobStatus& status, ConditionType type);
bool IsSucceeded(const TFJobStatus& status);
bool IsFailed(const TFJobStatus& status);
// Succeeded or Failed. Such a job never changes again.
bool IsFinished(const TFJobStatus& status);

// Writes one condition; true when the list changed.
// 1. A finished job: nothing is written (the reference let Failed follow Succeeded).
// 2. The same type with the same status and reason: nothing changes, not even the message.
// 3. The same type with the same status and another reason: lastTransitionTime stays.
// 4. Other entries of the type go; Restarting takes Running away, Running takes Restarting away;
// Succeeded and Failed
//    turn Running to False where it stands, with its reason, message and times. The new condition
//    comes last.
// Times are cut to seconds, as they are stored.
bool SetCondition(TFJobStatus& status, ConditionType type, bool value, std::string_view reason,
                  std::string_view message, Time now);

}  // namespace tfjob::api
