#include "runtime/graph/passes.h"

#include <utility>

namespace tfjob::graph {

std::vector<Pass> StandardPasses(Evaluator evaluate, Fusion fusion) {
  auto bodies = [evaluate](const Graph& graph) { return OptimizeBodies(graph, evaluate); };
  auto fold = [evaluate = std::move(evaluate)](const Graph& graph) {
    return FoldConstants(graph, evaluate);
  };
  return {
      {"mark_device_boundaries", MarkDeviceBoundaries},
      {"remove_dead_code", RemoveDeadCode},
      {"fuse_softmax_cross_entropy", FuseSoftmaxCrossEntropy},
      {"fold_constants", std::move(fold)},
      {"simplify", Simplify},
      {"merge_common_subexpressions", MergeCommonSubexpressions},
      {"remove_dead_code", RemoveDeadCode},
      {"join_pads", JoinPads},
      {"fuse_transpose", FuseTranspose},
      {"move_relu_behind_max_pool", MoveReluBehindMaxPool},
      {"mark_sparse_gradients", MarkSparseGradients},
      {"fuse_bias_and_activation", FuseBiasAndActivation},
      {"fuse_batch_norm", FuseBatchNorm},
      {"fuse_residual_gradient", FuseResidualGradient},
      {"fuse_product_sum",
       [fusion](const Graph& graph) {
         return fusion == Fusion::kRecompute ? FuseProductSum(graph) : graph;
       }},
      {"fuse_elementwise", [fusion](const Graph& graph) { return FuseElementwise(graph, fusion); }},
      {"remove_dead_code", RemoveDeadCode},
      {"hoist_transpose", HoistTranspose},
      {"optimize_bodies", std::move(bodies)},
      {"drop_device_boundaries", DropDeviceBoundaries},
  };
}

StatusOr<Graph> Optimize(const Graph& graph, Evaluator evaluate, Fusion fusion) {
  Graph optimized = graph;
  for (const Pass& pass : StandardPasses(std::move(evaluate), fusion)) {
    auto next = pass.run(optimized);
    if (!next.ok()) return Annotate(next.status(), StrCat("pass ", pass.name));
    optimized = *std::move(next);
  }
  return optimized;
}

}  // namespace tfjob::graph
