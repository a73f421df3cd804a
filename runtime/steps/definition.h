// Represents, as a value, a step that a program has composed from operations. The value describes
// the inputs, the computations on the inputs and on the variables of models, the changes to these
// variables, and the results. BuildStep (step_graph.h) converts this description to graphs.
//
// Each replica runs the step on a part of the examples. Gradients and reduced results are then
// combined across all replicas.
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

// Identifies one of the values that a node computes.
struct Value {
  int node = -1;
  int output = 0;
  bool operator==(const Value&) const = default;
};

// Appends the ops of a node to the graph, and returns the values that the node computes. Reports
// errors to the builder of the graph.
using Emit =
    std::function<std::vector<graph::Output>(StepGraph&, std::span<const graph::Output> inputs)>;

struct Node {
  std::string name;           // for error messages: "Multiply"
  std::vector<Value> inputs;  // values of earlier nodes
  Emit emit;
};

// Describes an input: an array with one row per example.
struct Input {
  std::string name;
  graph::TensorType example;  // the type of one row
};

// Describes a model whose variables the step reads, and perhaps changes.
struct StepModel {
  model::Model model;
  std::vector<graph::TensorType> features;     // the types of the model's inputs, for one example
  std::vector<model::VariableSpec> variables;  // as model::Variables, but named as in the store
  std::string prefix = {};                     // precedes each name in the store
  optimizer::Optimizer optimizer;
  optimizer::Clipping clipping;
};

// Describes the application of a model's optimizer. `gradients` contains one gradient per trainable
// variable, in the order of the variables. The gradients are summed over all replicas.
struct Application {
  int model = 0;
  std::vector<Value> gradients;
};

enum class Reduction { kNone, kSum, kMean };

// Describes a value that the step returns. Without a reduction, the value has one row per example,
// and the rows of all replicas are joined.
struct Result {
  std::string name;
  Value value;
  Reduction reduction = Reduction::kNone;
  // Whether the reduction also covers the first axis, whose elements are the examples. If not,
  // kMean computes the mean over all replicas that have examples.
  bool over_examples = false;
};

struct Definition {
  std::vector<Input> inputs;  // at least one
  std::vector<StepModel> models;
  std::vector<Node> nodes;
  std::vector<Application> applications;  // at most one per model
  std::vector<Result> results;            // with unique names
  int64_t seed = 0;                       // seed of random numbers
};

// Returns the indices of the trainable variables.
std::vector<size_t> TrainableOf(const StepModel& model);

}  // namespace tfjob::steps
