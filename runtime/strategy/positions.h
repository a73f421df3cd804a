// Reads and writes the positions in the data that a ledger records (state/snapshot.h): how many
// batches each task has drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ps/definition.h"

namespace tfjob::strategy {

// Returns the line that records the position of one task. It has the form of the parameter servers
// (ps/server/store.h), so that a job with one task can go on with servers.
std::string PositionRecord(const ps::TaskId& task, int64_t drawn);

// Returns the position of the only task that the ledger names. Returns nullopt if it names none, or
// several, because the examples were dealt out differently then.
std::optional<int64_t> OnlyPosition(const std::string& ledger);

// Prepares the ledger of a job with one task for a job with several, among which the examples are
// dealt out: gives each an equal part of the batches that were drawn, rounded down. Returns this
// part, or nullopt if there is nothing to deal out: the ledger does not name exactly one task, or
// `tasks` are fewer than two.
std::optional<int64_t> DealOut(const std::vector<ps::TaskId>& tasks, std::string& ledger);

}  // namespace tfjob::strategy
