// A graph laid out for a device, before any memory exists: where each value lives and which kernels
// run in which order. Values are aliased where nothing has to move: a read of a variable is its
// memory, Identity and Reshape are their input's, and a kernel that may work in place does so on an
// input that nobody needs afterwards.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/exec/memory_plan.h"
#include "runtime/graph/graph.h"
#include "runtime/kernels/kernel.h"
#include "runtime/tensor/tensor.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {

enum class Home { kFeed, kVariable, kConstant, kArena };

// Memory as a kernel sees it: the `index`-th feed, variable, constant or buffer of the plan.
struct Value {
  Home home = Home::kArena;
  int index = 0;
  kernels::Operand operand;
};

struct PlannedStep {
  std::string name;  // the node's
  kernels::KernelRequest request;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
};

struct PlannedFetch {
  std::string name;
  Value value;    // dense
  int ready = 0;  // the number of steps after which it is computed
};

struct Plan {
  std::vector<int> feeds;  // node of each feed
  std::vector<variables::Variable*> variables;
  std::vector<variables::Variable*> written;
  std::vector<Tensor> constants;
  std::vector<Lifetime> buffers;
  std::vector<PlannedStep> steps;
  std::vector<PlannedFetch> fetches;
};

// FailedPrecondition when a variable is missing from the store, InvalidArgument when it is not what
// the graph expects.
StatusOr<Plan> MakePlan(const graph::Graph& graph, variables::VariableStore& store,
                        const Device& device);

}  // namespace tfjob::exec
