// Reads and writes the learning rate of a state as a line of the ledger that servers and the chief
// exchange with the state. Checkpoints do not contain this line (state::Snapshot::learning_rate).
#pragma once

#include <optional>
#include <string>

#include "runtime/state/learning_rate.h"

namespace tfjob::ps {

// Takes the place of the shard's index in the line. Servers of older versions skip such a line.
inline constexpr int kRateLine = -4;

// Returns the line "-4 rate 0 STEP BITS".
std::string RateRecord(const state::LearningRate& rate);

// Returns the rate with this step and these bits, which may be invalid.
state::LearningRate RateOf(int64_t step, uint64_t bits);

// Removes the lines with a rate from `ledger`. Returns the rate of the first one, or nullopt if
// there is no valid one.
std::optional<state::LearningRate> TakeRate(std::string& ledger);

}  // namespace tfjob::ps
