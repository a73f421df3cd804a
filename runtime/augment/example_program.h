// Runs layers on single examples.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runtime/base/status.h"
#include "runtime/exec/program.h"
#include "runtime/graph/graph.h"
#include "runtime/model/model.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::augment {

// The source of the random numbers of one example.
struct RandomKey {
  uint64_t seed = 0;
  int64_t example = 0;
};

// Returns the graph of the layers for one example, whose shape is `in`. Requires layers that accept
// this shape as float32, and that have no variables. Returns InvalidArgument if they return a mask,
// or change the loss.
StatusOr<graph::Graph> ExampleGraph(const model::Model& layers, const Shape& in, bool training);

// Owned by one thread.
class ExampleProgram {
 public:
  // `graph` is a result of ExampleGraph. Programs of the same graph share its constants. Propagates
  // errors from exec::Compile.
  static StatusOr<std::unique_ptr<ExampleProgram>> Create(const graph::Graph& graph);

  // Fills `to` with the output of the layers. `from` and `to` have the sizes of the input and the
  // output. Allocates nothing. Propagates errors from exec::Program::Run.
  Status Run(const RandomKey& key, std::span<const float> from, std::span<float> to);

 private:
  ExampleProgram() = default;

  variables::VariableStore store_;  // has no variables; the program needs one
  std::unique_ptr<exec::Program> program_;
};

}  // namespace tfjob::augment
