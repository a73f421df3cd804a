// Rewrites and plans a graph for a device. Compile (program.h) then prepares the kernels and
// allocates the memory. Tests use the plan to count what a program will read, write and launch.
#pragma once

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/exec/plan.h"
#include "runtime/exec/program.h"
#include "runtime/graph/graph.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {

struct PlannedProgram {
  graph::Graph graph;  // with the requested fetches, after the passes of CompileOptions::optimize
  Plan plan;           // of the graph
};

// Fails as Compile does, except that kernels are not prepared. Accesses no device memory, apart
// from creating the optimizer slots that the store lacks.
StatusOr<PlannedProgram> PlanProgram(const graph::Graph& graph, variables::VariableStore& store,
                                     const Device& device, const CompileOptions& options = {});

}  // namespace tfjob::exec
