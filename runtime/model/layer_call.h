// Defines what a layer needs to append its ops to a graph. Private to this package.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/builder.h"

namespace tfjob::model {

// The inputs of a layer's Apply.
struct LayerCall {
  graph::Builder& b;
  graph::Output input;                   // [batch, …]
  std::vector<graph::Output> variables;  // in the order of Variables()
  bool training = false;
  graph::Output step, seed;  // int64 scalars; valid if training
  int64_t replica = 0;       // makes random numbers differ between tasks that share a seed
};

}  // namespace tfjob::model
