// Reads and updates status.conditions. The order of the entries, and the cases in which an entry
// changes to False, are part of the API. For example, clients read the type of the last entry.
#pragma once

#include <string_view>

#include "operator/api/tfjob.h"

namespace tfjob::api {

// Returns the condition of the given type, whether it is True or False; nullptr if there is none.
const Condition* Find(const TFJobStatus& status, ConditionType type);
// Returns whether a condition of the given type exists and is True.
bool IsTrue(const TFJobStatus& status, ConditionType type);
bool IsSucceeded(const TFJobStatus& status);
bool IsFailed(const TFJobStatus& status);
// Returns true if the job is Succeeded or Failed. Its conditions then no longer change.
bool IsFinished(const TFJobStatus& status);

// Sets one condition and returns whether the list changed.
//  1. If the job is finished, nothing changes. (In Kubeflow's Training Operator, Failed can follow
//     Succeeded.)
//  2. If an entry of this type has the same status and reason, nothing changes, not even
//     the message.
//  3. Otherwise, an existing entry of this type is removed and the new one is appended. If the old
//     entry had the same status, the new one keeps the old lastTransitionTime.
//  4. Adding Restarting also removes Running, and adding Running removes Restarting. Adding
//     Succeeded or Failed sets an existing Running to False, but leaves its position, reason,
//     message and times unchanged.
// Times are truncated to seconds, as they are stored.
bool SetCondition(TFJobStatus& status, ConditionType type, bool value, std::string_view reason,
                  std::string_view message, Time now);

}  // namespace tfjob::api
