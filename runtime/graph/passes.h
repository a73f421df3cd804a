// Declares rewriting passes. Each maps a graph to a graph with the same fetches, placeholders and
// effects on variables. Each pass has its own file and tests, and may be called alone. Optimize
// runs the passes that compiling uses.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Computes a node's outputs from the values of its inputs, to fold constants. Provided by exec,
// which has kernels.
using Evaluator = std::function<StatusOr<std::vector<Tensor>>(const Node& node,
                                                              const std::vector<Tensor>& inputs)>;

// Drops nodes on which neither a fetch nor a write to a variable depends. Placeholders stay.
Graph RemoveDeadCode(const Graph& graph);

// Replaces nodes whose inputs are all constants by Const if the output is small (at most 64 Ki
// elements). Random ops stay.
StatusOr<Graph> FoldConstants(const Graph& graph, const Evaluator& evaluate);

// Drops ops that change nothing (x·1, x+0, Reshape to the same shape, Identity), and replaces
// broadcast constants whose elements are equal by scalars.
Graph Simplify(const Graph& graph);

// Merges nodes with the same op, inputs, attributes and device. Reads of a variable merge if there
// is no write between them.
Graph MergeCommonSubexpressions(const Graph& graph);

// Replaces -Σ y·log(softmax(x)), and a cross-entropy over log(softmax(x)), by the loss op over x,
// which is numerically stable. There may be a clip by Keras' epsilon in between
// (from_logits=False). y must sum to 1. A model runs this pass before Gradients, so that the
// gradient is stable, too.
Graph FuseSoftmaxCrossEntropy(const Graph& graph);

// Replaces MatMul + BiasAdd + Relu|Sigmoid|Tanh by FusedMatMul if the results in between have no
// other use. BiasAdd or the activation may be missing.
Graph FuseMatMul(const Graph& graph);

// Replaces chains and trees of elementwise ops of one dtype and shape by FusedElementwise if the
// results in between have no other use.
Graph FuseElementwise(const Graph& graph);

struct Pass {
  std::string_view name;
  std::function<StatusOr<Graph>(const Graph&)> run;
};
// Returns the passes of Optimize, in order, so that each can be printed and tested.
std::vector<Pass> StandardPasses(Evaluator evaluate);
StatusOr<Graph> Optimize(const Graph& graph, Evaluator evaluate);

}  // namespace tfjob::graph
