// Declares passes that rewrite graphs. Each pass returns a new graph with the same fetches,
// placeholders and effects on variables. Each pass has its own file, and may be called separately.
// Compilation calls Optimize, which runs the standard passes.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Computes a node's outputs from the values of its inputs, for constant folding. The package exec
// provides this function, because this package has no kernels.
using Evaluator = std::function<StatusOr<std::vector<Tensor>>(const Node& node,
                                                              const std::vector<Tensor>& inputs)>;

// Adds an Identity to each edge between nodes with different device constraints. The other passes
// match no pattern across such a node and do not drop it, so they never merge nodes with different
// constraints. A graph can therefore be placed before it is optimised.
Graph MarkDeviceBoundaries(const Graph& graph);
// Drops the nodes that MarkDeviceBoundaries has added.
Graph DropDeviceBoundaries(const Graph& graph);

// Drops all nodes that no fetch, no write to a variable and no exchange (op.h) depends on, except
// placeholders.
Graph RemoveDeadCode(const Graph& graph);

// Replaces each exchange with its input. This is the meaning of an exchange if there are no other
// replicas.
Graph DropExchanges(const Graph& graph);

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

// Replaces the ops that compute an attention in a half type, and those that compute its gradients,
// with Attention and AttentionGrad, if nothing else uses the values between them. The ops of an
// attention are a product, a mask, Softmax, Dropout and a second product, with or without the mask
// and Dropout, between Transposes that split and join the heads. Heads have up to 128 elements. Run
// this pass before the others, and only for devices that have kernels for these ops.
Graph FuseAttention(const Graph& graph);

// Replaces the ops that compute a layer normalization of the last axis with gamma and beta in
// float32, and those that compute its gradients, with LayerNormalization and
// LayerNormalizationGrad, if nothing else uses the values between them. The fused ops also read and
// write half types in place of conversions from and to float32. Like FuseAttention, this pass is
// only for devices that have kernels for these ops.
Graph FuseLayerNormalization(const Graph& graph);

// Replaces MatMul [+ BiasAdd] and the ops of an approximate GELU (gelu.h) in a half type with
// MatMulGelu, and MatMul followed by the gradient of such a GELU with MatMulGeluGrad. The second
// product is that of the next layer's gradient and weights. Like FuseAttention, this pass is only
// for devices that have kernels for these ops.
Graph FuseGelu(const Graph& graph);

// Lets LayerNormalizationGrad also add a gradient to that of x, if the sum is the only use of the
// gradient of x. The added gradient is usually that of a residual connection.
Graph FuseResidualGradient(const Graph& graph);

// Replaces MatMul + Add with MatMulAdd, if the product has no other use. Excludes products that sum
// over rows, which are the gradients of weights: other passes fuse those. Only for devices that
// have a kernel for MatMulAdd.
Graph FuseProductSum(const Graph& graph);

// Lets ApplyOptimizer read a gradient in the half type from which it is converted to float32. Only
// for devices whose optimizers read half types.
Graph ReadHalfGradients(const Graph& graph);

// Replaces MatMul + BiasAdd + Relu|Sigmoid|Tanh with FusedMatMul, and Conv2D + BiasAdd + Relu with
// FusedConv2D, if the intermediate results have no other use. Either BiasAdd or the activation may
// be absent.
Graph FuseBiasAndActivation(const Graph& graph);

// Exchanges a Relu of a convolution and the MaxPool that follows it, and their gradients, if
// nothing else uses the values between them. The Relu and the gradient of the bias then process
// fewer elements. The maximum of NaN and other values is NaN in both orders. The gradient of the
// bias adds the same numbers in another order; no other value changes. Run this pass before
// FuseBiasAndActivation.
Graph MoveReluBehindMaxPool(const Graph& graph);

// Sets the attribute `dy_density` of the gradients of convolutions whose outputs were pooled by
// MaxPool: most of the elements of dy are 0.
Graph MarkSparseGradients(const Graph& graph);

// Replaces FusedBatchNorm + Relu with FusedBatchNormEx, and ReluGrad + FusedBatchNormGrad with
// FusedBatchNormGradEx. Another value, such as a shortcut, may be added before the Relu. Except for
// the gradient of the added value, the intermediate results must have no other use.
Graph FuseBatchNorm(const Graph& graph);

// The programs that FuseElementwise may build.
enum class Fusion : uint8_t {
  // A program consists of ops whose outputs have the same dtype and shape, and whose intermediate
  // results have no other use.
  kOnce,
  // A program may also compute in both float32 and half types, and contain conversions, broadcasts
  // and Dropout. If several programs use a value, each of them computes it again where this reads
  // and writes fewer bytes than storing it. Only for devices whose kernels support this
  // (exec/device.h) and compute faster than they access memory.
  kRecompute,
};

// Fuses chains and trees of elementwise ops into FusedElementwise.
Graph FuseElementwise(const Graph& graph, Fusion fusion = Fusion::kOnce);

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
// Returns the passes that Optimize runs, in order, so that each can be printed and tested. The
// first one marks the boundaries between devices, and the last one drops them. With
// Fusion::kRecompute, they include FuseProductSum. `fusion` does not apply to the bodies of Scans.
std::vector<Pass> StandardPasses(Evaluator evaluate, Fusion fusion = Fusion::kOnce);
StatusOr<Graph> Optimize(const Graph& graph, Evaluator evaluate, Fusion fusion = Fusion::kOnce);

}  // namespace tfjob::graph
