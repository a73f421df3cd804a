// Describes, as a value, a step that a program has composed from operations: its inputs, its
// computations on them and on the variables of models, its changes to these variables, and its
// results. BuildStep (step_graph.h) turns this description into graphs.
//
// Each replica runs the step on its part of the examples. Gradients and reduced results are then
// combined across the replicas.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/model/model.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::steps {

class StepGraph;

// One of the values that a node computes.
struct Value {
  int node = -1;
  int output = 0;
  bool operator==(const Value&) const = default;
};

// Appends a node's ops to the graph, and returns its values. Reports errors to the graph's builder.
using Emit =
    std::function<std::vector<graph::Output>(StepGraph&, std::span<const graph::Output> inputs)>;

struct Node {
  std::string name;           // for error messages: "Multiply"
  std::vector<Value> inputs;  // of earlier nodes
  Emit emit;
};

// An array with one row per example.
struct Input {
  std::string name;
  graph::TensorType example;  // the type of one row
};

// A model whose variables the step reads, and perhaps changes.
struct StepModel {
  model::Model model;
  std::vector<graph::TensorType> features;     // the types of its inputs, for one example
  std::vector<model::VariableSpec> variables;  // as model::Variables, but named as in the store
  std::string prefix = {};                     // the part of these names before the model's own
  optimizer::Optimizer optimizer;
  optimizer::Clipping clipping;
};

// Applies the model's optimizer to the gradients of its trainable variables, which are in the order
// of the variables. The gradients are summed over the replicas.
struct Application {
  int model = 0;
  std::vector<Value> gradients;
};

enum class Reduction { kNone, kSum, kMean };

// A value that the step returns. Without a reduction, it has one row per example, and the rows of
// all replicas are joined.
struct Result {
  std::string name;
  Value value;
  Reduction reduction = Reduction::kNone;
  // Whether the reduction also covers the first axis, which counts examples. If not, a mean is
  // taken over the replicas that have examples.
  bool over_examples = false;
};

struct Definition {
  std::vector<Input> inputs;  // at least one
  std::vector<StepModel> models;
  std::vector<Node> nodes;
  std::vector<Application> applications;  // at most one per model
  std::vector<Result> results;            // with different names
  int64_t seed = 0;                       // of random numbers
};

// Returns the indices of the trainable variables.
std::vector<size_t> TrainableOf(const StepModel& model);

}  // namespace tfjob::steps
