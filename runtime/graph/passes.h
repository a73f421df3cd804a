// Declares rewriting passes. Each pass returns a new graph with the same fetches, placeholders and
// effects on variables. Each has its own file and may be called alone. Compilation calls Optimize,
// which runs the standard passes.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Computes a node's outputs from the values of its inputs, to fold constants. The package exec
// provides this function, because this package has no kernels.
using Evaluator = std::function<StatusOr<std::vector<Tensor>>(const Node& node,
                                                              const std::vector<Tensor>& inputs)>;

// Drops nodes on which neither a fetch nor a write to a variable depends. Keeps placeholders.
Graph RemoveDeadCode(const Graph& graph);

// If all inputs of a node are constants and each of its outputs is small (at most 64 Ki elements),
// replaces the node with one Const per output. Keeps random ops.
StatusOr<Graph> FoldConstants(const Graph& graph, const Evaluator& evaluate);

// Drops ops that change nothing, such as x·1, x+0, Identity, and Reshape to the same shape. If all
// elements of a constant operand are equal, replaces the constant with a scalar, unless the result
// would then have a different shape.
Graph Simplify(const Graph& graph);

// Merges nodes with the same op, inputs, attributes and device. Two reads of a variable are merged
// if there is no write between them.
Graph MergeCommonSubexpressions(const Graph& graph);

// Replaces -Σ y·log(softmax(x)) with the cross-entropy op over x, which is numerically stable. Does
// the same for a cross-entropy op whose logits are log(softmax(x)). The softmax may be clipped by
// Keras' epsilon before the logarithm, as Keras does if from_logits=False. Each row of y must sum
// to 1. If this pass runs before Gradients, the gradient is numerically stable, too.
Graph FuseSoftmaxCrossEntropy(const Graph& graph);

// Drops a Transpose of an operand of a BatchMatMulV2 if the Transpose only exchanges the axes -2
// and -1, or -3 and -2. Also drops a Transpose that only exchanges the axes -3 and -2 of the
// product, if this is the product's only use. BatchMatMulV2 then reads or writes the transposed
// layout directly.
Graph FuseTranspose(const Graph& graph);

// Replaces MatMul + BiasAdd + Relu|Sigmoid|Tanh with FusedMatMul, and Conv2D + BiasAdd + Relu with
// FusedConv2D, if the intermediate results have no other use. Either BiasAdd or the activation may
// be absent.
Graph FuseBiasAndActivation(const Graph& graph);

// Replaces FusedBatchNorm + Relu with FusedBatchNormEx, and ReluGrad + FusedBatchNormGrad with
// FusedBatchNormGradEx. Another value, such as a shortcut's, may be added before the Relu. The
// intermediate results, except for the gradient of an added value, must have no other use.
Graph FuseBatchNorm(const Graph& graph);

// Fuses chains and trees of elementwise ops whose outputs have the same dtype and shape into
// FusedElementwise, if the intermediate results have no other use.
Graph FuseElementwise(const Graph& graph);

// Replaces a sum of Pads with one Concat, if the inputs of the Pads are blocks that cover the
// result along one axis, without gaps or overlaps. Such sums occur as the gradient of a value that
// is read in slices.
Graph JoinPads(const Graph& graph);

// Transposes an invariant matrix before a Scan of several steps, if the body reads the matrix only
// as the transposed second operand of products. The products then read the transposed matrix
// directly.
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
