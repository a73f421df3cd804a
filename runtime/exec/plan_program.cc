#include "runtime/exec/plan_program.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/exec/evaluate.h"
#include "runtime/exec/fuse_bias_gradient.h"
#include "runtime/exec/fuse_sgd.h"
#include "runtime/exec/group_updates.h"
#include "runtime/exec/schedule.h"
#include "runtime/graph/op.h"
#include "runtime/graph/passes.h"

namespace tfjob::exec {

using graph::Graph;

namespace {

// Returns the graph with only the fetches `names`, in that order.
StatusOr<Graph> WithFetches(const Graph& graph, const std::vector<std::string>& names) {
  Graph chosen;
  for (const graph::Node& node : graph.nodes()) chosen.Append(node);
  for (const std::string& name : names) {
    const graph::Fetch* fetch = graph.FindFetch(name);
    if (fetch == nullptr) {
      const std::string known = absl::StrJoin(
          graph.fetches(), ", ",
          [](std::string* out, const graph::Fetch& other) { out->append(other.name); });
      return NotFound("the graph has no fetch ", name, "; it has ", known.empty() ? "none" : known);
    }
    chosen.AddFetch(*fetch);
  }
  return chosen;
}

// Returns whether FuseSgd may run. If a kernel refuses its inputs, variables must keep their
// values. On a device that is not immediate, each kernel that updates variables must therefore
// check for an earlier refusal. MatMulAccumulate cannot check, because the device's library
// computes it.
bool CanFuseSgd(const Graph& graph, const Device& device) {
  return device.runtime->immediate() ||
         std::ranges::none_of(graph.nodes(), [](const graph::Node& node) {
           return MayRefuseValues(node.op, node.attributes);
         });
}

}  // namespace

StatusOr<PlannedProgram> PlanProgram(const Graph& graph, variables::VariableStore& store,
                                     const Device& device, const CompileOptions& options) {
  Graph chosen = graph;
  const bool groups = device.kernels->Find("ApplyOptimizers") != nullptr;
  if (!options.fetches.empty()) {
    ASSIGN_OR_RETURN(chosen, WithFetches(graph, options.fetches));
  }
  if (options.exchange == nullptr && !graph::Exchanges(chosen).empty())
    chosen = graph::DropExchanges(chosen);
  if (options.optimize) {
    chosen = graph::MarkDeviceBoundaries(chosen);
    if (device.kernels->Find("LayerNormalization") != nullptr)
      chosen = graph::FuseLayerNormalization(chosen);
    if (device.kernels->Find("Attention") != nullptr) chosen = graph::FuseAttention(chosen);
    if (device.kernels->Find("MatMulGelu") != nullptr) chosen = graph::FuseGelu(chosen);
    const auto fusion = device.recomputes ? graph::Fusion::kRecompute : graph::Fusion::kOnce;
    ASSIGN_OR_RETURN(chosen,
                     graph::Optimize(chosen, KernelEvaluator(CpuDevice().kernels.get()), fusion));
    // One launch updates many small variables. The products that compute their gradients can then
    // also compute the gradients of the biases.
    if (CanFuseSgd(chosen, device))
      chosen = FuseSgd(chosen, groups ? kMostGroupedGradient : 0, device.recomputes);
    if (device.kernels->Find("MatMulBiasGrad") != nullptr) chosen = FuseBiasGradient(chosen);
    if (device.recomputes) chosen = graph::ReadHalfGradients(chosen);
  }
  ASSIGN_OR_RETURN(Plan plan, MakePlan(chosen, store, device));
  if (options.optimize && groups) GroupUpdates(plan);
  return PlannedProgram{std::move(chosen), std::move(plan)};
}

}  // namespace tfjob::exec
