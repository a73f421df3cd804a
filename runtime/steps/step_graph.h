// Builds the graphs of a step for a given number of examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/graph.h"
#include "runtime/steps/definition.h"

namespace tfjob::steps {

// Names of feeds and fetches.
inline constexpr char kRun[] = "run";            // int64: the index of the run, for random numbers
inline constexpr char kSeed[] = "seed";          // int64
inline constexpr char kExamples[] = "examples";  // float32: the number of examples of all replicas
std::string InputFeed(size_t input);
std::string StepFeed(size_t model);  // int64: the number of previous updates of the model
std::string ResultFetch(size_t result);

// Contains the graph of a step while it is being built. Nodes append their ops to the graph.
class StepGraph {
 public:
  StepGraph(const Definition& definition, int64_t examples, int64_t replica);

  graph::Builder b;
  const Definition& definition;
  const int64_t examples;  // number of examples of this replica
  const int64_t replica;
  std::vector<graph::Output> inputs;
  graph::Output run, seed, all_examples;

  // Contains the reads and updates of one model in the step.
  struct ModelState {
    std::vector<graph::Output> reads;      // the values of the variables before the step
    std::vector<graph::Output> current;    // like `reads`, but with the latest assigned statistics
    std::vector<bool> assigned;            // whether a call has assigned the variable
    std::vector<graph::Output> penalties;  // penalties on the outputs of layers
  };
  std::vector<ModelState> models;
  // Set by a node that broadcasts values of different ranks, if an axis whose length is the number
  // of examples is aligned with a different axis.
  Status alignment;
  Status misaligned;  // the first of these errors
};

// Describes how the step changes a variable.
struct Change {
  size_t model = 0, variable = 0;
  bool gradient = true;  // if false, a moving statistic that replaces the variable
  std::string name;      // the fetch of the step's graph, and the feed of the update graph
};

struct BuiltStep {
  graph::Graph graph;
  std::vector<Change> changes;
  std::vector<graph::TensorType> results;  // the types that are fetched
  std::vector<bool> by_example;            // per result: whether the first axis counts examples
  std::vector<int64_t> counts;             // per result: the length of the first axis, or 1
  // An error if the example axis of one value appears to be aligned with a different axis of
  // another value.
  Status misaligned;
};

// Builds the graph of one replica. If `updates` is set, the graph itself changes the variables;
// otherwise, the changes are fetches. Errors name the node.
StatusOr<BuiltStep> BuildStep(const Definition& definition, int64_t examples, int64_t replica,
                              bool updates);

// Builds a graph that applies changes, which are fed to it.
StatusOr<graph::Graph> BuildUpdates(const Definition& definition, const BuiltStep& built);

// Returns an error unless the step can be built for any number of examples, and its results have
// the form that Result requires. Tries two numbers of examples.
Status Check(const Definition& definition);

}  // namespace tfjob::steps
