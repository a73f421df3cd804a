#include "runtime/exec/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/exec/schedule.h"
#include "runtime/exec/slots.h"
#include "runtime/exec/uses.h"
#include "runtime/graph/op.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/half.h"

namespace tfjob::exec {
namespace {

using graph::Graph;
using graph::Node;
using graph::Output;
using graph::TensorType;
using kernels::Operand;
using variables::Variable;

constexpr int kForever = std::numeric_limits<int>::max();

class Planner {
 public:
  Planner(const Graph& graph, variables::VariableStore& store, const Device& device,
          const std::map<std::string, Operand>& feeds)
      : graph_(graph),
        store_(store),
        device_(device),
        feeds_(feeds),
        schedule_(Schedule(graph)),
        uses_(FindUses(graph, schedule_)) {}

  StatusOr<Plan> Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      if (graph_.node(id).op == "Placeholder") PlanFeed(id);
    }
    for (position_ = 0; position_ < static_cast<int>(schedule_.size()); ++position_) {
      const int id = schedule_[static_cast<size_t>(position_)];
      Status planned = PlanNode(id);
      if (!planned.ok()) return Annotate(planned, "node " + graph_.node(id).name);
    }
    for (const graph::Fetch& fetch : graph_.fetches()) {
      const int ready = ready_[SourceOf(graph_, fetch.output)];
      plan_.fetches.push_back({fetch.name, values_[fetch.output], ready});
    }
    return std::move(plan_);
  }

 private:
  Status PlanNode(int id) {
    const Node& node = graph_.node(id);
    if (node.op == "Placeholder") return CopyFedFetch(id);
    if (node.op == "Const") return PlanConst(id);
    if (node.op == "ReadVariable") return PlanRead(id);
    if (node.op == "Identity" || node.op == "Reshape") return PlanView(id);
    if (node.op == "ApplyOptimizer" || node.op == "ApplyOptimizerRows") return PlanApply(id);
    if (node.op == "MatMulAccumulate") return PlanAccumulate(id);
    if (node.op == "Scan") MakeStatesDense(node);
    if (graph::FindOp(node.op)->effect == graph::Effect::kWrite) return PlanWrite(id);
    return PlanKernel(id);
  }

  void PlanFeed(int id) {
    const TensorType& type = graph_.type({id, 0});
    const int index = static_cast<int>(plan_.feeds.size());
    plan_.feeds.push_back(id);
    const auto layout = feeds_.find(graph_.node(id).name);
    values_[{id, 0}] = {Home::kFeed, index,
                        layout == feeds_.end() ? OfHost(type.dtype, type.shape) : layout->second};
  }

  // Returns the operand for a dense value that the host provides. Only kernels of an immediate
  // device read the value in the host's memory.
  Operand OfHost(DType dtype, const Shape& shape) const {
    Operand operand = Operand::Dense(dtype, shape);
    if (device_.runtime->immediate()) operand.memory = device::MemoryKind::kHost;
    return operand;
  }

  // Copies the feed if it is also fetched, because the fetched value must outlive the feed's
  // memory.
  Status CopyFedFetch(int id) {
    if (uses_[{id, 0}].fetched) CopyIntoArena(id, values_[{id, 0}]);
    return OkStatus();
  }

  Status PlanConst(int id) {
    const Tensor* value = graph_.node(id).attributes.Find<Tensor>("value");
    const int index = static_cast<int>(plan_.constants.size());
    plan_.constants.push_back(*value);
    values_[{id, 0}] = {Home::kConstant, index, OfHost(value->dtype(), value->shape())};
    return OkStatus();
  }

  Status PlanRead(int id) {
    ASSIGN_OR_RETURN(Value value, VariableOf(graph_.node(id)));
    const TensorType& type = graph_.type({id, 0});
    RETURN_IF_ERROR(ExpectType(value, type));
    const Uses& uses = uses_[{id, 0}];
    if (uses.fetched || uses.overwritten) {
      CopyIntoArena(id, value);
    } else {
      values_[{id, 0}] = value;
    }
    return OkStatus();
  }

  // Plans Identity or Reshape, whose output uses the input's memory. Only a Reshape of padded rows
  // has to copy its input.
  Status PlanView(int id) {
    const Node& node = graph_.node(id);
    Value value = values_[node.inputs[0]];
    if (node.op == "Identity") {
      values_[{id, 0}] = value;
      return OkStatus();
    }
    if (!value.operand.dense()) return PlanKernel(id);
    const device::MemoryKind memory = value.operand.memory;
    value.operand = Operand::Dense(node.outputs[0].dtype, node.outputs[0].shape);
    value.operand.memory = memory;
    values_[{id, 0}] = value;
    return OkStatus();
  }

  // Plans an ApplyOptimizer(gradient, step) or ApplyOptimizerRows(indices, values, step).
  Status PlanApply(int id) {
    const Node& node = graph_.node(id);
    ASSIGN_OR_RETURN(Value variable, VariableOf(node));
    const bool rows = node.op == "ApplyOptimizerRows";
    TensorType expected = graph_.type(node.inputs[rows ? 1 : 0]);
    if (rows && variable.operand.shape.rank() == 2)
      expected.shape = {variable.operand.shape.dim(0), expected.shape.dim(1)};
    if (IsHalf(expected.dtype)) expected.dtype = DType::kFloat32;  // the gradient of a float32
    RETURN_IF_ERROR(ExpectType(variable, expected));
    ASSIGN_OR_RETURN(optimizer::Optimizer optimizer, optimizer::FromAttributes(node.attributes));
    ASSIGN_OR_RETURN(std::vector<Variable*> slots,
                     FindOrCreateSlots(optimizer, *At(variable), store_));
    std::vector<Value> written{variable};
    for (Variable* slot : slots) written.push_back(ValueOf(slot));
    std::vector<Value> inputs{Use(node.inputs.back())};
    for (size_t i = 0; i + 1 < node.inputs.size(); ++i) inputs.push_back(Use(node.inputs[i]));
    inputs.insert(inputs.end(), written.begin(), written.end());
    EmitWrite(node, std::move(inputs), std::move(written));
    return OkStatus();
  }

  Status PlanAccumulate(int id) {
    const Node& node = graph_.node(id);
    ASSIGN_OR_RETURN(Value variable, VariableOf(node));
    EmitWrite(node, {Use(node.inputs[0]), Use(node.inputs[1]), variable}, {variable});
    return OkStatus();
  }

  Status PlanWrite(int id) {
    const Node& node = graph_.node(id);
    ASSIGN_OR_RETURN(Value variable, VariableOf(node));
    TensorType expected = graph_.type(node.inputs[0]);
    const bool to_doubles = node.op == "AssignAdd" && expected.dtype == DType::kFloat32 &&
                            variable.operand.dtype == DType::kFloat64;
    if (to_doubles) expected.dtype = DType::kFloat64;
    RETURN_IF_ERROR(ExpectType(variable, expected));
    EmitWrite(node, {variable, Use(node.inputs[0])}, {variable});
    return OkStatus();
  }

  Status PlanKernel(int id) {
    const Node& node = graph_.node(id);
    std::vector<Value> inputs;
    for (Output input : node.inputs) inputs.push_back(Use(input));
    std::vector<Value> outputs;
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
      outputs.push_back(PlaceOutput(id, i, inputs));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      values_[{id, static_cast<int>(i)}] = outputs[i];
      ready_[{id, static_cast<int>(i)}] = static_cast<int>(plan_.steps.size()) + 1;
    }
    Emit(node, node.op, std::move(inputs), std::move(outputs));
    return OkStatus();
  }

  // Copies `from` into a dense buffer, and makes that copy the value of node `id`.
  void CopyIntoArena(int id, Value from) {
    const Value copy = NewBuffer({id, 0}, Operand::Dense(from.operand.dtype, from.operand.shape));
    values_[{id, 0}] = copy;
    ready_[{id, 0}] = static_cast<int>(plan_.steps.size()) + 1;
    Emit(graph_.node(id), "Identity", {from}, {copy});
  }

  // Copies each initial state that has padded rows, as a variable may have, to a dense buffer.
  void MakeStatesDense(const Node& node) {
    const auto states = static_cast<size_t>(node.attributes.Get<int64_t>("states", 0));
    for (size_t i = 0; i < states; ++i) {
      const Output input = node.inputs[i];
      if (values_[input].operand.dense()) continue;
      const Value from = Use(input);
      const Value copy = NewBuffer(input, Operand::Dense(from.operand.dtype, from.operand.shape));
      values_[input] = copy;
      Emit(Node{.name = node.name}, "Identity", {from}, {copy});
    }
  }

  Value PlaceOutput(int id, int index, const std::vector<Value>& inputs) {
    const Operand operand = LayoutOf({id, index});
    for (const kernels::InPlace& rule : InPlaceRules(graph_.node(id).op)) {
      if (rule.output != index || !MayOverwrite(id, rule.input, operand, inputs)) continue;
      const Value shared = inputs[static_cast<size_t>(rule.input)];
      if (uses_[{id, index}].fetched) BufferOf(shared).last = kForever;
      taken_ = {id, shared.index};
      return {Home::kArena, shared.index, operand};
    }
    return NewBuffer({id, index}, operand);
  }

  const std::vector<kernels::InPlace>& InPlaceRules(const std::string& op) const {
    static const std::vector<kernels::InPlace>* const kNone = new std::vector<kernels::InPlace>();
    const kernels::KernelEntry* entry = device_.kernels->Find(op);
    return entry == nullptr ? *kNone : entry->in_place;
  }

  // Returns whether node `id` may write an output with the layout `operand` over its input at index
  // `input`. The input must be in the arena, have the same layout, and be neither fetched nor used
  // by a later node. The node must not also read this memory in another layout, and must not have
  // already placed another output there.
  bool MayOverwrite(int id, int input, const Operand& operand, const std::vector<Value>& inputs) {
    if (input >= static_cast<int>(inputs.size())) return false;
    const Value& value = inputs[static_cast<size_t>(input)];
    if (value.home != Home::kArena || value.operand != operand) return false;
    if (taken_ == std::pair(id, value.index) || BufferOf(value).last == kForever) return false;
    const Uses& uses = uses_[SourceOf(graph_, graph_.node(id).inputs[static_cast<size_t>(input)])];
    if (uses.fetched || uses.last > position_) return false;
    return std::ranges::all_of(inputs, [&](const Value& other) {
      return other.home != Home::kArena || other.index != value.index || other.operand == operand;
    });
  }

  Operand LayoutOf(Output output) {
    const TensorType& type = graph_.type(output);
    Operand operand = Operand::Dense(type.dtype, type.shape);
    const Uses& uses = uses_[output];
    if (!uses.fetched && !uses.reshaped && graph_.node(output).op != "Scan") {
      operand.row_stride = device_.row_stride(type.dtype, type.shape);
    }
    return operand;
  }

  Value NewBuffer(Output output, Operand operand) {
    const int step = static_cast<int>(plan_.steps.size());
    const int last = uses_[output].fetched ? kForever : step;
    plan_.buffers.push_back({operand.bytes(), step, last});
    return {Home::kArena, static_cast<int>(plan_.buffers.size()) - 1, std::move(operand)};
  }

  Lifetime& BufferOf(const Value& value) { return plan_.buffers[static_cast<size_t>(value.index)]; }

  // Returns the value as an input of the next step, and extends the lifetime of its buffer to that
  // step.
  Value Use(Output output) {
    const Value& value = values_[output];
    if (value.home == Home::kArena) {
      Lifetime& buffer = BufferOf(value);
      buffer.last = std::max(buffer.last, static_cast<int>(plan_.steps.size()));
    }
    return value;
  }

  void Emit(const Node& node, std::string op, std::vector<Value> inputs,
            std::vector<Value> outputs) {
    PlannedStep step{
        node.name, {std::move(op), node.attributes, {}, {}}, std::move(inputs), std::move(outputs)};
    for (const Value& value : step.inputs) step.request.inputs.push_back(value.operand);
    for (const Value& value : step.outputs) step.request.outputs.push_back(value.operand);
    plan_.steps.push_back(std::move(step));
  }

  void EmitWrite(const Node& node, std::vector<Value> inputs, std::vector<Value> written) {
    for (const Value& value : written) {
      Variable* variable = At(value);
      if (std::ranges::find(plan_.written, variable) == plan_.written.end()) {
        plan_.written.push_back(variable);
      }
    }
    Emit(node, node.op, std::move(inputs), std::move(written));
  }

  Variable* At(const Value& value) { return plan_.variables[static_cast<size_t>(value.index)]; }

  StatusOr<Value> VariableOf(const Node& node) {
    const std::string name = node.attributes.Get("variable", std::string());
    auto variable = store_.Get(name);
    if (!variable.ok())
      return FailedPrecondition(Message(variable.status()), "; create it before compiling");
    if (&(*variable)->runtime() != device_.runtime.get()) {
      return FailedPrecondition("variable ", name, " is in the memory of another device than ",
                                device_.name, "; create its store with the device's runtime");
    }
    return ValueOf(*variable);
  }

  Value ValueOf(Variable* variable) {
    auto found = std::ranges::find(plan_.variables, variable);
    const int index = static_cast<int>(found - plan_.variables.begin());
    if (found == plan_.variables.end()) plan_.variables.push_back(variable);
    Operand operand{variable->dtype(), variable->shape(), variable->row_stride()};
    return {Home::kVariable, index, std::move(operand)};
  }

  Status ExpectType(const Value& variable, const TensorType& type) {
    const TensorType actual{variable.operand.dtype, variable.operand.shape};
    if (actual == type) return OkStatus();
    return InvalidArgument("variable ", At(variable)->name(), " is ", actual.ToString(),
                           ", but the graph expects ", type.ToString());
  }

  const Graph& graph_;
  variables::VariableStore& store_;
  const Device& device_;
  const std::map<std::string, Operand>& feeds_;
  std::vector<int> schedule_;
  std::map<Output, Uses> uses_;
  std::map<Output, Value> values_;
  std::map<Output, int> ready_;        // by source: the number of steps after which it is computed
  std::pair<int, int> taken_{-1, -1};  // node and buffer of the last output over an input
  int position_ = 0;
  Plan plan_;
};

}  // namespace

StatusOr<Plan> MakePlan(const Graph& graph, variables::VariableStore& store, const Device& device,
                        const std::map<std::string, Operand>& feeds) {
  return Planner(graph, store, device, feeds).Run();
}

}  // namespace tfjob::exec
