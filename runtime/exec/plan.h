// Plans how a device runs a graph, before any memory is allocated. Decides where each value is
// stored, and which kernels run in which order. Values share memory where that avoids a copy:
//   - A value that is read from a variable stays in the variable's memory, unless the value is
//     fetched or the variable is written before the value's last use.
//   - Identity and Reshape use their input's memory, unless a Reshape's input has padded rows.
//   - A kernel that may work in place writes its output over an input that is not needed
//     afterwards.
// The states and the outputs of a Scan are dense.
#pragma once

#include <map>
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

enum class Home { kFeed, kVariable, kConstant, kArena, kCaller };

// The location and the layout of a value, as a kernel accesses it. `index` is the value's position
// among the plan's feeds, variables, constants or buffers, depending on `home`. For kCaller, which
// MakePlan does not use, the value is in the memory of the fetch with this position
// (Program::Place).
struct Value {
  Home home = Home::kArena;
  int index = 0;
  kernels::Operand operand;
};

struct PlannedStep {
  std::string name;  // name of the node
  kernels::KernelRequest request;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
};

struct PlannedFetch {
  std::string name;
  Value value;    // dense
  int ready = 0;  // the value is computed after this many steps
};

struct Plan {
  std::vector<int> feeds;  // the node of each feed
  std::vector<variables::Variable*> variables;
  std::vector<variables::Variable*> written;
  std::vector<Tensor> constants;
  std::vector<Lifetime> buffers;
  std::vector<PlannedStep> steps;
  std::vector<PlannedFetch> fetches;
};

// Plans the graph. Feeds and constants are in host memory if the device is immediate, and in device
// memory otherwise; all other values are in device memory. `feeds` contains the layouts of feeds,
// by name; feeds without an entry are dense. Creates the optimizer slots that the store lacks.
// Returns FailedPrecondition if a variable is missing from the store or belongs to another device,
// and InvalidArgument if a variable does not have the dtype and shape that the graph expects.
StatusOr<Plan> MakePlan(const graph::Graph& graph, variables::VariableStore& store,
                        const Device& device,
                        const std::map<std::string, kernels::Operand>& feeds = {});

}  // namespace tfjob::exec
