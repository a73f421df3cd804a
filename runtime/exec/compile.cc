#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/check.h"
#include "runtime/exec/constants.h"
#include "runtime/exec/evaluate.h"
#include "runtime/exec/fuse_bias_gradient.h"
#include "runtime/exec/fuse_sgd.h"
#include "runtime/exec/largest_tensors.h"
#include "runtime/exec/program_state.h"
#include "runtime/exec/run_slot.h"
#include "runtime/exec/scan.h"
#include "runtime/exec/schedule.h"
#include "runtime/graph/passes.h"

namespace tfjob::exec {

using graph::Graph;

// Turns a plan into a program. Prepares the kernels, places the buffers and resolves all addresses.
class Compiler {
 public:
  Compiler(Plan plan, const Device& device) : device_(device), s_(new Program::State()) {
    s_->plan = std::move(plan);
    s_->device = device.name;
    s_->runtime = device.runtime;
    s_->stream = kernels::Stream(device.pool);
  }

  StatusOr<std::unique_ptr<Program>> Run(const Graph& graph, const CompileOptions& options) {
    for (int id : s_->plan.feeds) s_->feeds.push_back({graph.node(id).name, graph.type({id, 0})});
    RETURN_IF_ERROR(PrepareKernels());
    RETURN_IF_ERROR(AllocateArena());
    ASSIGN_OR_RETURN(s_->constants, PlaceConstants(s_->plan.constants, *s_->runtime));
    for (size_t i = 0; i < s_->steps.size(); ++i) ResolveAddresses(static_cast<int>(i));
    for (const PlannedFetch& fetch : s_->plan.fetches) {
      const kernels::Operand& operand = fetch.value.operand;
      s_->fetches.push_back({fetch.name, {operand.dtype, operand.shape}});
      s_->fetched.push_back(static_cast<const std::byte*>(AddressOf(fetch.value)));
    }
    RETURN_IF_ERROR(CutSegments(options.announced));
    RETURN_IF_ERROR(MakeSlots());
    return std::unique_ptr<Program>(new Program(std::move(s_)));
  }

 private:
  Status PrepareKernels() {
    for (const PlannedStep& step : s_->plan.steps) {
      auto kernel = PrepareKernel(step.request, device_);
      if (!kernel.ok()) return Annotate(kernel.status(), "node " + step.name);
      s_->workspace_bytes = std::max(s_->workspace_bytes, (*kernel)->workspace_bytes());
      s_->steps.push_back({*std::move(kernel), {}, {}, {}});
    }
    return OkStatus();
  }

  Status AllocateArena() {
    s_->memory = PlanMemory(s_->plan.buffers);
    const size_t bytes = s_->memory.arena_bytes + s_->workspace_bytes;
    // Before the first run, all fetches must be zero. On an immediate device, the host reads
    // fetches from the arena, so zero the arena. On other devices, the host reads fetches from a
    // RunSlot.
    const auto contents =
        s_->runtime->immediate() ? Buffer::Contents::kZero : Buffer::Contents::kUndefined;
    auto arena = s_->runtime->Allocate(device::MemoryKind::kDevice, bytes, contents, "the program");
    if (!arena.ok()) {
      return Status(arena.status().code(), StrCat(Message(arena.status()),
                                                  "; choose a smaller batch. The largest tensors: ",
                                                  LargestTensors(s_->plan)));
    }
    s_->arena = *std::move(arena);
    s_->workspace = static_cast<std::byte*>(s_->arena.get()) + s_->memory.arena_bytes;
    return OkStatus();
  }

  void ResolveAddresses(int index) {
    const PlannedStep& planned = s_->plan.steps[static_cast<size_t>(index)];
    Step& step = s_->steps[static_cast<size_t>(index)];
    for (const Value& value : planned.inputs) {
      if (value.home == Home::kFeed) {
        s_->fed_inputs.push_back({index, static_cast<int>(step.inputs.size()), value.index});
      }
      step.inputs.push_back(AddressOf(value));
    }
    for (const Value& value : planned.outputs) {
      if (value.home == Home::kVariable)
        step.written.push_back(s_->plan.variables[static_cast<size_t>(value.index)]);
      step.outputs.push_back(AddressOf(value));
    }
  }

  void* AddressOf(const Value& value) {
    const auto i = static_cast<size_t>(value.index);
    switch (value.home) {
      case Home::kFeed:
        return nullptr;
      case Home::kVariable:
        return s_->plan.variables[i]->data();
      case Home::kConstant:
        return s_->constants[i].get();
      case Home::kArena:
        return static_cast<std::byte*>(s_->arena.get()) + s_->memory.offsets[i];
    }
    return nullptr;
  }

  // Returns the number of steps up to and including the last one that may reject values.
  int StepsUntilChecked() const {
    const std::vector<PlannedStep>& steps = s_->plan.steps;
    for (size_t i = steps.size(); i-- > 0;) {
      const kernels::KernelRequest& request = steps[i].request;
      if (MayRefuseValues(request.op, request.attributes)) return static_cast<int>(i) + 1;
    }
    return 0;
  }

  // Ends a segment wherever an announced fetch is ready, but not before the last check of values:
  // otherwise, a task might send part of the results of a step that then fails. The last segment
  // ends with the program.
  Status CutSegments(const std::vector<std::string>& announced) {
    std::map<int, std::vector<int>> ready;
    const int checked = StepsUntilChecked();
    for (const std::string& name : announced) {
      const auto found = std::ranges::find(s_->fetches, name, &Port::name);
      if (found == s_->fetches.end()) {
        return InvalidArgument("announced fetch ", name, " is not among the fetches");
      }
      const auto fetch = found - s_->fetches.begin();
      const int computed = s_->plan.fetches[static_cast<size_t>(fetch)].ready;
      ready[std::max(computed, checked)].push_back(static_cast<int>(fetch));
    }
    const int count = static_cast<int>(s_->steps.size());
    ready[count];
    int begin = 0;
    for (auto& [end, fetches] : ready) {
      s_->segments.push_back({begin, end, std::move(fetches)});
      begin = end;
    }
    return OkStatus();
  }

  // Creates one slot for each run that may be in progress, unless the device is immediate.
  Status MakeSlots() {
    for (std::vector<Feed>& bound : s_->bound) bound.resize(s_->feeds.size());
    if (s_->runtime->immediate()) return OkStatus();
    ASSIGN_OR_RETURN(s_->compute, s_->runtime->NewStream());
    ASSIGN_OR_RETURN(s_->copies, s_->runtime->NewStream());
    for (std::unique_ptr<RunSlot>& slot : s_->slots) {
      ASSIGN_OR_RETURN(slot, RunSlot::Create(*s_, device_.pool));
    }
    return OkStatus();
  }

  const Device& device_;
  std::unique_ptr<Program::State> s_;
};

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

StatusOr<std::unique_ptr<Program>> Compile(const Graph& graph, variables::VariableStore& store,
                                           const Device& device, const CompileOptions& options) {
  Graph chosen = graph;
  if (!options.fetches.empty()) {
    ASSIGN_OR_RETURN(chosen, WithFetches(graph, options.fetches));
  }
  if (options.optimize) {
    ASSIGN_OR_RETURN(chosen, graph::Optimize(chosen, KernelEvaluator(CpuDevice().kernels.get())));
    if (CanFuseSgd(chosen, device)) chosen = FuseSgd(chosen);
    if (device.kernels->Find("MatMulBiasGrad") != nullptr) chosen = FuseBiasGradient(chosen);
  }
  ASSIGN_OR_RETURN(Plan plan, MakePlan(chosen, store, device));
  return Compiler(std::move(plan), device).Run(chosen, options);
}

}  // namespace tfjob::exec
