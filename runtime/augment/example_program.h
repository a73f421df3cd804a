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

// Determines the random numbers of one example.
struct RandomKey {
  uint64_t seed = 0;
  int64_t example = 0;
};

// Returns the graph of the layers for a single example of shape `in`. The layers must accept
// float32 inputs of this shape, and must not have variables. Returns InvalidArgument if the layers
// return a mask, or add to the loss.
StatusOr<graph::Graph> ExampleGraph(const model::Model& layers, const Shape& in, bool training);

// Runs the graph of the layers. Not thread-safe: only one thread may use an ExampleProgram.
class ExampleProgram {
 public:
  // Creates a program for a graph that ExampleGraph has returned. Programs of the same graph share
  // its constants. Propagates errors from exec::Compile.
  static StatusOr<std::unique_ptr<ExampleProgram>> Create(const graph::Graph& graph);

  // Applies the layers to `from`, and stores the output in `to`. `from` and `to` must have the
  // sizes of the input and of the output, respectively. Does not allocate memory. Propagates errors
  // from exec::Program::Run.
  Status Run(const RandomKey& key, std::span<const float> from, std::span<float> to);

 private:
  ExampleProgram() = default;

  variables::VariableStore store_;  // has no variables, but a program requires a store
  std::unique_ptr<exec::Program> program_;
};

}  // namespace tfjob::augment
