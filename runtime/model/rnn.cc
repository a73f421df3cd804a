// Runs stacked cells as recurrent layers, one after another. Every cell except the last returns all
// steps. The outputs of such a cell at masked steps do not matter, because the following cells also
// skip these steps.
#include "runtime/model/rnn.h"

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

using graph::Output;

Status NotCallable(std::string_view class_name) {
  return InvalidArgument(class_name, " computes a single step; pass it to an RNN layer");
}

// Describes a cell that runs as a separate recurrent layer. Its inputs are the sequences, followed
// by its states.
struct CellPass {
  const Layer* cell = nullptr;
  RecurrentArguments arguments;
  std::vector<int> states;  // indices of the RNN inputs that are the cell's initial states
};

std::vector<CellPass> PassesOf(const RNN& rnn) {
  std::vector<CellPass> passes;
  size_t next = 0;
  const std::vector<const Layer*> cells = rnn.Cells();
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool last = i + 1 == cells.size();
    CellPass pass{cells[i], *CellArguments(*cells[i]), {}};
    pass.arguments.return_sequences = !last || rnn.return_sequences;
    pass.arguments.return_state = rnn.return_state;
    pass.arguments.go_backwards = rnn.go_backwards;
    pass.arguments.zero_output_for_mask = last && rnn.zero_output_for_mask;
    const std::vector<int>& given = rnn.inputs.initial_state;
    for (int s = 0; s < pass.arguments.states() && next < given.size(); ++s)
      pass.states.push_back(given[next++]);
    passes.push_back(std::move(pass));
  }
  return passes;
}

Status CheckCells(const RNN& rnn) {
  if (rnn.cell == nullptr) return InvalidArgument("expected a cell");
  const std::vector<const Layer*> cells = rnn.Cells();
  if (cells.empty()) return InvalidArgument("expected one cell or more");
  int states = 0;
  for (const Layer* cell : cells) {
    const RecurrentArguments* arguments = CellArguments(*cell);
    if (arguments == nullptr) {
      return InvalidArgument(
          "expected a SimpleRNNCell, LSTMCell or GRUCell, or StackedRNNCells of ", "these, got ",
          Describe(*cell));
    }
    states += arguments->states();
  }
  const auto given = static_cast<int>(rnn.inputs.initial_state.size());
  if (given == 0 || given == states) return OkStatus();
  return InvalidArgument("expected ", states, " initial states, got ", given);
}

// Returns the arguments of a pass as indices of the pass's inputs: the sequences, the initial
// states of the pass and, if `with_mask` is set, the mask.
RecurrentInputs InputsOf(const RNN& rnn, const CellPass& pass, bool with_mask) {
  RecurrentInputs inputs{.listed = rnn.inputs.listed};
  int count = 1;
  for (size_t s = 0; s < pass.states.size(); ++s) inputs.initial_state.push_back(count++);
  if (with_mask) inputs.mask = count;
  return inputs;
}

// Returns the variables of a cell, with the names that they have in Keras.
std::vector<VariableSpec> VariablesOf(const RNN& rnn, const CellPass& pass, int64_t features) {
  const bool stacked = rnn.cell->config.As<StackedRNNCells>() != nullptr;
  const std::string prefix =
      stacked ? StrCat(rnn.cell->name, "/", pass.cell->name) : pass.cell->name;
  std::vector<VariableSpec> variables = RecurrentVariables(pass.arguments, features);
  for (VariableSpec& variable : variables) {
    variable.name = prefix + variable.name.substr(variable.name.find('/'));
    variable.InLayer(pass.cell->trainable, pass.cell->frozen_from_outside);
    variable.InLayer(rnn.cell->trainable, rnn.cell->frozen_from_outside);
  }
  return variables;
}

}  // namespace

const RecurrentArguments* CellArguments(const Layer& layer) {
  if (const auto* lstm = layer.config.As<LSTMCell>()) return &lstm->arguments;
  if (const auto* gru = layer.config.As<GRUCell>()) return &gru->arguments;
  if (const auto* simple = layer.config.As<SimpleRNNCell>()) return &simple->arguments;
  return nullptr;
}

template <CellKind kKind>
StatusOr<std::vector<TensorType>> Cell<kKind>::OutputTypes(std::span<const TensorType>) const {
  return NotCallable(kClass);
}

template <CellKind kKind>
std::vector<Output> Cell<kKind>::Apply(LayerCall& call) const {
  return {call.b.Fail(NotCallable(kClass))};
}

template struct Cell<CellKind::kSimpleRNN>;
template struct Cell<CellKind::kLSTM>;
template struct Cell<CellKind::kGRU>;

StatusOr<std::vector<TensorType>> StackedRNNCells::OutputTypes(std::span<const TensorType>) const {
  return NotCallable(kClass);
}

std::vector<Output> StackedRNNCells::Apply(LayerCall& call) const {
  return {call.b.Fail(NotCallable(kClass))};
}

void RNN::Arguments(ArgumentVisitor& visitor) {
  visitor.Wrapped("cell", cell, /*required=*/true);
  visitor.Flag("return_sequences", return_sequences);
  visitor.Flag("return_state", return_state);
  visitor.Flag("go_backwards", go_backwards);
  visitor.Only("stateful", "false");
  visitor.Flag("zero_output_for_mask", zero_output_for_mask);
  visitor.Retired("time_major", "false");
  visitor.Ignored("unroll");
}

std::vector<const Layer*> RNN::Cells() const {
  const auto* stack = cell->config.As<StackedRNNCells>();
  if (stack == nullptr) return {cell.get()};
  std::vector<const Layer*> cells;
  for (const auto& each : stack->cells) cells.push_back(each.get());
  return cells;
}

StatusOr<std::vector<TensorType>> RNN::OutputTypes(std::span<const TensorType> in) const {
  RETURN_IF_ERROR(CheckCells(*this));
  TensorType x = in[static_cast<size_t>(inputs.sequences)];
  std::vector<TensorType> out = {x}, states;
  for (const CellPass& pass : PassesOf(*this)) {
    std::vector<TensorType> own = {x};
    for (int state : pass.states) {
      if (state == kNoInput) return InvalidArgument("an initial state is missing");
      own.push_back(in[static_cast<size_t>(state)]);
    }
    const bool with_mask = inputs.mask != kNoInput;
    if (with_mask) own.push_back(in[static_cast<size_t>(inputs.mask)]);
    auto types = RecurrentTypes(pass.arguments, InputsOf(*this, pass, with_mask), own);
    if (!types.ok()) return Annotate(types.status(), Describe(*pass.cell));
    x = out[0] = (*types)[0];
    states.insert(states.end(), types->begin() + 1, types->end());
  }
  out.insert(out.end(), states.begin(), states.end());
  return out;
}

std::vector<VariableSpec> RNN::Variables(std::span<const TensorType> in) const {
  int64_t features = in[static_cast<size_t>(inputs.sequences)].shape.dim(-1);
  std::vector<VariableSpec> variables;
  for (const CellPass& pass : PassesOf(*this)) {
    for (VariableSpec& variable : VariablesOf(*this, pass, features))
      variables.push_back(std::move(variable));
    features = pass.arguments.units;
  }
  return variables;
}

std::vector<Output> RNN::Outputs(LayerCall& call, bool flip) const {
  const Output mask = inputs.MaskOf(call);
  if (return_sequences) call.output_masks = {inputs.SequencesMaskOf(call)};
  std::vector<Output> outputs = {call.inputs[static_cast<size_t>(inputs.sequences)]}, states;
  auto next = call.variables.begin();
  const std::vector<CellPass> passes = PassesOf(*this);
  for (const CellPass& pass : passes) {
    LayerCall inner{.b = call.b,
                    .inputs = {outputs[0]},
                    .training = call.training,
                    .trainable = call.trainable,
                    .step = call.step,
                    .seed = call.seed,
                    .replica = call.replica};
    for (int state : pass.states) inner.inputs.push_back(call.inputs[static_cast<size_t>(state)]);
    if (mask.valid()) inner.inputs.push_back(mask);
    const auto count = pass.arguments.use_bias ? 3 : 2;
    inner.variables.assign(next, next + count);
    next += count;
    const graph::NameScope scope(call.b, pass.cell->name);
    // Restore the original order of the steps for the next cell, which runs in the same direction.
    const bool last = &pass == &passes.back();
    const std::vector<Output> results = RecurrentOutputs(
        pass.arguments, InputsOf(*this, pass, mask.valid()), inner, last ? flip : go_backwards);
    if (!call.b.ok()) return {};
    outputs[0] = results[0];
    states.insert(states.end(), results.begin() + 1, results.end());
  }
  outputs.insert(outputs.end(), states.begin(), states.end());
  return outputs;
}

}  // namespace tfjob::model::layers
