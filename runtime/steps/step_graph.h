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
inline constexpr char kExamples[] = "examples";  // float32: the examples of all replicas
std::string InputFeed(size_t input);
std::string StepFeed(size_t model);  // int64: the number of updates of the model before this one
std::string ResultFetch(size_t result);

// The graph of a step while it is built. Nodes append their ops to it.
class StepGraph {
 public:
  StepGraph(const Definition& definition, int64_t examples, int64_t replica);

  graph::Builder b;
  const Definition& definition;
  const int64_t examples;  // of this replica
  const int64_t replica;
  std::vector<graph::Output> inputs;
  graph::Output run, seed, all_examples;

  // The reads and updates of one model in the step.
  struct ModelState {
    std::vector<graph::Output> reads;    // the variables' values before the step
    std::vector<graph::Output> current;  // like `reads`, but with the statistics that calls assign
    std::vector<bool> assigned;          // which variables calls have assigned
    std::vector<graph::Output> penalties;  // on the outputs of layers
  };
  std::vector<ModelState> models;
  // Set by a node that broadcasts values of different ranks if it aligns an axis whose length is
  // the number of examples with a different axis.
  Status alignment;
  Status misaligned;  // the first of these errors
};

// How the step changes a variable.
struct Change {
  size_t model = 0, variable = 0;
  bool gradient = true;  // if false, a moving statistic, which replaces the variable's value
  std::string name;  // of the fetch in the step's graph, and of the feed in the graph of updates
};

struct BuiltStep {
  graph::Graph graph;
  std::vector<Change> changes;
  std::vector<graph::TensorType> results;  // as they are fetched
  std::vector<bool> by_example;            // by result: the first axis counts the examples
  std::vector<int64_t> counts;             // by result: the length of the first axis, or 1
  // An error if the example axis of a value appears to be aligned with a different axis of another
  // value.
  Status misaligned;
};

// Builds the graph of one replica. With `updates`, the graph itself changes the variables;
// otherwise, it fetches the changes. Errors name the node.
StatusOr<BuiltStep> BuildStep(const Definition& definition, int64_t examples, int64_t replica,
                              bool updates);

// Builds the graph that applies the changes that are fed to it.
StatusOr<graph::Graph> BuildUpdates(const Definition& definition, const BuiltStep& built);

// Returns an error unless the step can be built for any number of examples (it tries two numbers)
// and its results have the form that Result requires.
Status Check(const Definition& definition);

}  // namespace tfjob::steps
