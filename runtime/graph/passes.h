// Rewriting passes: Graph → Graph with the same fetches, placeholders and effects on variables.
// Each is a file of its own with its tests, and may be called alone; Optimize runs the list that
// compiling uses.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Computes a node's outputs from the values of its inputs: how constants are folded. Given by exec,
// which has kernels.
using Evaluator = std::function<StatusOr<std::vector<Tensor>>(const Node& node,
                                                              const std::vector<Tensor>& inputs)>;

// Drops nodes on which neither a fetch nor a write to a variable depends. Placeholders stay.
Graph RemoveDeadCode(const Graph& graph);

// Replaces nodes whose inputs are all constants (and small: at most 64 Ki elements out) by Const.
// Random ops stay.
StatusOr<Graph> FoldConstants(const Graph& graph, const Evaluator& evaluate);

// Drops ops that change nothing (x·1, x+0, Reshape to the same shape, Identity) and makes scalars
// of broadcast constants whose elements are equal.
Graph Simplify(const Graph& graph);

// Merges nodes with equal op, inputs, attributes and device. Reads of a variable merge when no
// write stands between.
Graph MergeCommonSubexpressions(const Graph& graph);

// -Σ y·log(softmax(x)) and a cross-entropy over log(softmax(x)), in between perhaps a clip by Keras'
// epsilon (from_logits=False), become the loss op over x, which is stable; y sums to 1. A model runs
// it before Gradients, so that the gradient is the stable one too.
Graph FuseSoftmaxCrossEntropy(const Graph& graph);

// MatMul + BiasAdd + Relu|Sigmoid|Tanh → FusedMatMul, where the parts have no other use.
Graph FuseMatMul(const Graph& graph);

// Chains and trees of elementwise ops of one dtype and shape, with no other use in between →
// FusedElementwise.
Graph FuseElementwise(const Graph& graph);

struct Pass {
  std::string_view name;
  std::function<StatusOr<Graph>(const Graph&)> run;
};
// The passes of Optimize in their order, for printing and tests of each.
std::vector<Pass> StandardPasses(Evaluator evaluate);
StatusOr<Graph> Optimize(const Graph& graph, Evaluator evaluate);

}  // namespace tfjob::graph
