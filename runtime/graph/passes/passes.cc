#include "runtime/graph/passes.h"

#include <utility>

namespace tfjob::graph {

std::vector<Pass> StandardPasses(Evaluator evaluate) {
  auto bodies = [evaluate](const Graph& graph) { return OptimizeBodies(graph, evaluate); };
  auto fold = [evaluate = std::move(evaluate)](const Graph& graph) {
    return FoldConstants(graph, evaluate);
  };
  return {
      {"remove_dead_code", RemoveDeadCode},
      {"fuse_softmax_cross_entropy", FuseSoftmaxCrossEntropy},
      {"fold_constants", std::move(fold)},
      {"simplify", Simplify},
      {"merge_common_subexpressions", MergeCommonSubexpressions},
      {"remove_dead_code", RemoveDeadCode},
      {"join_pads", JoinPads},
      {"fuse_transpose", FuseTranspose},
      {"fuse_bias_and_activation", FuseBiasAndActivation},
      {"fuse_batch_norm", FuseBatchNorm},
      {"fuse_elementwise", FuseElementwise},
      {"remove_dead_code", RemoveDeadCode},
      {"hoist_transpose", HoistTranspose},
      {"optimize_bodies", std::move(bodies)},
  };
}

StatusOr<Graph> Optimize(const Graph& graph, Evaluator evaluate) {
  Graph optimized = graph;
  for (const Pass& pass : StandardPasses(std::move(evaluate))) {
    auto next = pass.run(optimized);
    if (!next.ok()) return Annotate(next.status(), StrCat("pass ", pass.name));
    optimized = *std::move(next);
  }
  return optimized;
}

}  // namespace tfjob::graph
