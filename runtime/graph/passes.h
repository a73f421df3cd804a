// Declares passes that rewrite graphs. Each pass returns a new graph with the same fetches,
// placeholders and effects on variables. Each pass has its own file, and may be called separately.
// Compilation calls Optimize, which runs the standard passes.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Computes a node's outputs from the values of its inputs, for constant folding. The package exec
// provides this function, because this package has no kernels.
using Evaluator = std::function<StatusOr<std::vector<Tensor>>(const Node& node,
                                                              const std::vector<Tensor>& inputs)>;

// Drops all nodes on which no fetch and no write to a variable depends, except placeholders.
Graph RemoveDeadCode(const Graph& graph);

// Replaces a node with one Const per output if all of its inputs are constants and each output has
// at most 64 Ki elements. Does not fold random ops.
StatusOr<Graph> FoldConstants(const Graph& graph, const Evaluator& evaluate);

// Drops ops that change nothing, such as x·1, x+0, Identity, and Reshape to the same shape.
// Replaces a constant operand with a scalar if all of its elements are equal and the shape of the
// result does not change.
Graph Simplify(const Graph& graph);

// Merges nodes with the same op, inputs, attributes and device. Two reads of a variable are merged
// if there is no write between them.
Graph MergeCommonSubexpressions(const Graph& graph);

// Replaces -Σ y·log(softmax(x)) with the cross-entropy op over x, which is numerically stable. Does
// the same for a cross-entropy op whose logits are log(softmax(x)). The softmax may be clipped with
// Keras' epsilon before the logarithm, as in Keras with from_logits=False. Each row of y must sum
// to 1. If this pass runs before Gradients, the gradient is also numerically stable.
Graph FuseSoftmaxCrossEntropy(const Graph& graph);

// Drops a Transpose of an operand of BatchMatMulV2 if it only exchanges axes -2 and -1, or axes -3
// and -2. Also drops a Transpose of the product if it only exchanges axes -3 and -2 and is the
// product's only use. BatchMatMulV2 then reads or writes the transposed layout directly.
Graph FuseTranspose(const Graph& graph);

// Replaces MatMul + BiasAdd + Relu|Sigmoid|Tanh with FusedMatMul, and Conv2D + BiasAdd + Relu with
// FusedConv2D, if the intermediate results have no other use. Either BiasAdd or the activation may
// be absent.
Graph FuseBiasAndActivation(const Graph& graph);

// Replaces FusedBatchNorm + Relu with FusedBatchNormEx, and ReluGrad + FusedBatchNormGrad with
// FusedBatchNormGradEx. Another value, such as a shortcut, may be added before the Relu. Except for
// the gradient of the added value, the intermediate results must have no other use.
Graph FuseBatchNorm(const Graph& graph);

// Fuses chains and trees of elementwise ops whose outputs have the same dtype and shape into
// FusedElementwise, if the intermediate results have no other use.
Graph FuseElementwise(const Graph& graph);

// Replaces a sum of Pads with a single Concat, if the inputs of the Pads are blocks that cover the
// result along one axis, without gaps or overlaps. Such a sum is the gradient of a value that is
// read in slices.
Graph JoinPads(const Graph& graph);

// Transposes an invariant matrix once, before a Scan of several steps, if the body uses the matrix
// only as the transposed second operand of products. The products then need no transposition.
Graph HoistTranspose(const Graph& graph);

// Runs Optimize on the body of each Scan.
StatusOr<Graph> OptimizeBodies(const Graph& graph, const Evaluator& evaluate);

struct Pass {
  std::string_view name;
  std::function<StatusOr<Graph>(const Graph&)> run;
};
// Returns the passes that Optimize runs, in order, so that each can be printed and tested.
std::vector<Pass> StandardPasses(Evaluator evaluate);
StatusOr<Graph> Optimize(const Graph& graph, Evaluator evaluate);

}  // namespace tfjob::graph
