#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/exec/constants.h"
#include "runtime/exec/plan_program.h"
#include "runtime/exec/program_state.h"
#include "runtime/exec/run_slot.h"
#include "runtime/exec/scan.h"
#include "runtime/exec/schedule.h"
#include "runtime/graph/op.h"
#include "runtime/variables/memory_use.h"

namespace tfjob::exec {

using graph::Graph;

// Turns a plan into a program. Prepares the kernels, places the buffers and resolves all addresses.
class Compiler {
 public:
  Compiler(Plan plan, const Device& device, Exchange* exchange)
      : device_(device), exchange_(exchange), s_(new Program::State()) {
    s_->plan = std::move(plan);
    s_->device = device.name;
    s_->runtime = device.runtime;
    s_->stream = kernels::Stream(device.pool);
  }

  StatusOr<std::unique_ptr<Program>> Run(const Graph& graph, const CompileOptions& options) {
    for (int id : s_->plan.feeds) s_->feeds.push_back({graph.node(id).name, graph.type({id, 0})});
    RETURN_IF_ERROR(PrepareKernels());
    if (s_->runtime->immediate()) MovePlaced(options.placed);
    RETURN_IF_ERROR(AllocateArena());
    ASSIGN_OR_RETURN(s_->constants, PlaceConstants(s_->plan.constants, *s_->runtime));
    for (size_t i = 0; i < s_->steps.size(); ++i) ResolveAddresses(static_cast<int>(i));
    std::ranges::stable_sort(s_->placed_operands, {}, &PlacedOperand::fetch);
    for (const PlannedFetch& fetch : s_->plan.fetches) {
      const kernels::Operand& operand = fetch.value.operand;
      s_->fetches.push_back({fetch.name, {operand.dtype, operand.shape}});
      s_->fetched.push_back(static_cast<const std::byte*>(AddressOf(fetch.value)));
      s_->kept.push_back(!s_->runtime->immediate() && s_->fetched.back() != nullptr &&
                         std::ranges::count(options.kept, fetch.name) > 0);
    }
    RETURN_IF_ERROR(CutSegments(options.announced));
    RETURN_IF_ERROR(MakeSlots());
    return std::unique_ptr<Program>(new Program(std::move(s_)));
  }

 private:
  Status PrepareKernels() {
    for (const PlannedStep& step : s_->plan.steps) {
      auto kernel = Prepare(step.request);
      if (!kernel.ok()) return Annotate(kernel.status(), "node " + step.name);
      s_->workspace_bytes = std::max(s_->workspace_bytes, (*kernel)->workspace_bytes());
      s_->steps.push_back({*std::move(kernel), {}, {}, {}});
    }
    return OkStatus();
  }

  StatusOr<std::unique_ptr<kernels::Kernel>> Prepare(const kernels::KernelRequest& request) {
    const graph::Op* op = graph::FindOp(request.op);
    if (op != nullptr && op->effect == graph::Effect::kExchange)
      return PrepareExchange(request, *exchange_, device_);
    return PrepareKernel(request, device_);
  }

  // Returns, for each buffer, the placed fetch to whose memory it moves, or a negative number if it
  // stays in the arena.
  std::vector<int> FindPlaced(const std::vector<std::string>& placed) const {
    constexpr int kShared = -2;  // by several fetches
    const Plan& plan = s_->plan;
    std::vector<int> fetch_of(plan.buffers.size(), -1);
    for (size_t f = 0; f < plan.fetches.size(); ++f) {
      const PlannedFetch& fetch = plan.fetches[f];
      if (fetch.value.home != Home::kArena) continue;
      const auto buffer = static_cast<size_t>(fetch.value.index);
      const bool moves = fetch_of[buffer] == -1 && fetch.value.operand.bytes() > 0 &&
                         fetch.value.operand.bytes() == plan.buffers[buffer].bytes &&
                         std::ranges::find(placed, fetch.name) != placed.end();
      fetch_of[buffer] = moves ? static_cast<int>(f) : kShared;
    }
    const int checked = StepsUntilChecked();
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      for (const Value& value : plan.steps[i].inputs) {
        if (value.home != Home::kArena) continue;
        int& fetch = fetch_of[static_cast<size_t>(value.index)];
        if (fetch < 0) continue;
        const int ready = plan.fetches[static_cast<size_t>(fetch)].ready;
        if (static_cast<int>(i) >= std::max(ready, checked)) fetch = kShared;
      }
    }
    return fetch_of;
  }

  // Moves the buffers of placed fetches from the arena to the caller's memory, if no step accesses
  // them after they have been announced.
  void MovePlaced(const std::vector<std::string>& placed) {
    if (placed.empty()) return;
    Plan& plan = s_->plan;
    const std::vector<int> fetch_of = FindPlaced(placed);
    std::vector<int> moved_to;  // by buffer: its position among those in the arena
    std::vector<Lifetime> kept;
    for (size_t b = 0; b < plan.buffers.size(); ++b) {
      moved_to.push_back(static_cast<int>(kept.size()));
      if (fetch_of[b] < 0) kept.push_back(plan.buffers[b]);
    }
    plan.buffers = std::move(kept);
    const auto move = [&](Value& value) {
      if (value.home != Home::kArena) return;
      const auto buffer = static_cast<size_t>(value.index);
      const bool moves = fetch_of[buffer] >= 0;
      value.home = moves ? Home::kCaller : Home::kArena;
      value.index = moves ? fetch_of[buffer] : moved_to[buffer];
    };
    for (PlannedStep& step : plan.steps) {
      std::ranges::for_each(step.inputs, move);
      std::ranges::for_each(step.outputs, move);
    }
    for (PlannedFetch& fetch : plan.fetches) move(fetch.value);
  }

  // Returns the values in the arena, one per buffer. They are not necessarily in use at the same
  // time.
  std::vector<variables::MemoryUse> ArenaTensors() const {
    std::vector<variables::MemoryUse> tensors;
    std::vector<bool> seen(s_->plan.buffers.size());
    for (const PlannedStep& step : s_->plan.steps) {
      for (const Value& output : step.outputs) {
        const auto buffer = static_cast<size_t>(output.index);
        if (output.home != Home::kArena || seen[buffer]) continue;
        seen[buffer] = true;
        tensors.push_back({step.name, output.operand.dtype, output.operand.shape,
                           s_->plan.buffers[buffer].bytes});
      }
    }
    return tensors;
  }

  // Checks that the arena and the variables that the program uses fit into memory together. Their
  // pages are not in use before the first run.
  Status CheckMemory(size_t arena_bytes) const {
    std::vector<variables::MemoryUse> tensors = ArenaTensors();
    size_t total = arena_bytes;
    for (const variables::Variable* variable : s_->plan.variables) {
      tensors.push_back(
          {variable->name(), variable->dtype(), variable->shape(), variable->num_bytes()});
      total += variable->num_bytes();
    }
    return variables::CheckMemory(total, std::move(tensors));
  }

  Status AllocateArena() {
    s_->memory = PlanMemory(s_->plan.buffers);
    const size_t bytes = s_->memory.arena_bytes + s_->workspace_bytes;
    if (s_->runtime->immediate()) RETURN_IF_ERROR(CheckMemory(bytes));
    // Before the first run, all fetches must be zero. On an immediate device, the host reads
    // fetches from the arena, so zero the arena. On other devices, the host reads fetches from a
    // RunSlot.
    const auto contents =
        s_->runtime->immediate() ? Buffer::Contents::kZero : Buffer::Contents::kUndefined;
    auto arena = s_->runtime->Allocate(device::MemoryKind::kDevice, bytes, contents, "the program");
    if (!arena.ok()) {
      return Status(arena.status().code(), StrCat(Message(arena.status()),
                                                  "; choose a smaller batch. The largest tensors: ",
                                                  variables::LargestTensors(ArenaTensors())));
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
      if (value.home == Home::kCaller)
        s_->placed_operands.push_back(
            {index, false, static_cast<int>(step.inputs.size()), value.index});
      step.inputs.push_back(AddressOf(value));
    }
    for (const Value& value : planned.outputs) {
      if (value.home == Home::kVariable)
        step.written.push_back(s_->plan.variables[static_cast<size_t>(value.index)]);
      if (value.home == Home::kCaller)
        s_->placed_operands.push_back(
            {index, true, static_cast<int>(step.outputs.size()), value.index});
      step.outputs.push_back(AddressOf(value));
    }
  }

  void* AddressOf(const Value& value) {
    const auto i = static_cast<size_t>(value.index);
    switch (value.home) {
      case Home::kFeed:
      case Home::kCaller:
        return nullptr;  // the address is set later
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
  Exchange* const exchange_;  // null if there are no exchanges
  std::unique_ptr<Program::State> s_;
};

StatusOr<std::unique_ptr<Program>> Compile(const Graph& graph, variables::VariableStore& store,
                                           const Device& device, const CompileOptions& options) {
  ASSIGN_OR_RETURN(PlannedProgram planned, PlanProgram(graph, store, device, options));
  return Compiler(std::move(planned.plan), device, options.exchange).Run(planned.graph, options);
}

}  // namespace tfjob::exec
