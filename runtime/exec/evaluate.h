// Runs individual ops on the host, for constant folding.
#pragma once

#include "runtime/graph/passes.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::exec {

// Returns an evaluator that prepares a node's kernel from `table` and runs it once. The table must
// contain kernels for the host, and must outlive the evaluator.
graph::Evaluator KernelEvaluator(const kernels::KernelTable* table);

}  // namespace tfjob::exec
