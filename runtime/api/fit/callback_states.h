// Keeps the states of callbacks beside the checkpoints of BackupAndRestore, in one file per
// checkpoint. Private to this package.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/api/callback.h"
#include "runtime/base/status.h"

namespace tfjob::api {

inline constexpr char kCallbackStates[] = "callbacks-";  // the names of the files begin with it

// Writes the states after `step`. Writes no file if no callback has a state. Deletes the files of
// later steps, which the run has not reached, and those of old checkpoints.
tfjob::Status WriteCallbackStates(const std::string& folder, int64_t step,
                                  const std::vector<Callback>& callbacks);

// Gives the callbacks the newest states from `step` or before. Does nothing if there are none, or
// if they are those of another number of callbacks. Returns the error of a callback.
tfjob::Status RestoreCallbackStates(const std::string& folder, int64_t step,
                                    const std::vector<Callback>& callbacks);

}  // namespace tfjob::api
