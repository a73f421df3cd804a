// Determines whether a Scan can be split into several loops, each over some of the rows. This is
// possible if the body treats each row separately. In a recurrent layer, for instance, each example
// of a batch is a row.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/graph/scan.h"

namespace tfjob::exec {

// Describes how a Scan uses rows. All states have rows, which are indexed by their first axis.
struct ScanRows {
  int64_t rows = 0;
  // Whether the elements of a sequence or an invariant have one row for each row of the states. All
  // other inputs, such as weights, are the same for all rows.
  std::vector<bool> sequences, invariants;
  std::vector<bool> nodes;  // whether a node of the body has such rows
  double work = 0;          // an estimate of the multiplications per row, in all steps
};

// Returns nullopt if a row of a state or an output may depend on other rows of the inputs, or if
// this cannot be determined.
std::optional<ScanRows> FindScanRows(const graph::ScanForm& form);

// Returns the body for a Scan over only `count` rows.
graph::Graph BodyOfRows(const graph::Graph& body, const ScanRows& rows, int64_t count);

// Returns how many loops the Scan should be split into: at least 1. Depends only on the Scan, so
// that its results do not depend on the number of threads. `weights` is the size of the invariants
// that are the same for all rows, in bytes.
int64_t LoopsOf(const ScanRows& rows, size_t weights);

}  // namespace tfjob::exec
