// Reads and writes the positions in the data that a ledger records (state/snapshot.h): the number
// of batches that each task has drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/state/task_id.h"

namespace tfjob::strategy {

// Returns the line that records the position of one task. It has the form that parameter servers
// use (ps/server/store.h), so that a job with one task can continue with servers.
std::string PositionRecord(const state::TaskId& task, int64_t drawn);

// Returns the position of the only task that the ledger names. Returns nullopt if the position is
// invalid, or if the ledger names no task or several tasks. With several tasks, the examples were
// distributed differently.
std::optional<int64_t> OnlyPosition(const std::string& ledger);

// Converts the ledger of a job with one task into the ledger of a job with several `tasks`, which
// share the examples. Counts an equal share of the drawn batches, rounded down, as drawn by each
// task, and returns the size of this share. If OnlyPosition returns nullopt, or if there are fewer
// than two tasks, leaves the ledger unchanged and returns nullopt.
std::optional<int64_t> DealOut(const std::vector<state::TaskId>& tasks, std::string& ledger);

}  // namespace tfjob::strategy
