// Totals the time in a trace per op.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/trace/trace.h"

namespace tfjob::trace {

struct Total {
  std::string name;  // of the node: "dense/MatMul"
  std::string kind;  // its op: "MatMul"
  int64_t calls = 0;
  int64_t ns = 0;  // of all calls, on all threads
};

// Returns the totals of all ops, the largest first. The time of a span inside an op's span counts
// towards both.
std::vector<Total> OpTotals(const Trace& trace);

}  // namespace tfjob::trace
