#include "runtime/model/layers/recurrent.h"

namespace tfjob::model::layers {
namespace {

constexpr NumberRule kDropoutRate = {
    .least = 0, .most = 1, .below_most = true, .expected = "a number in [0, 1)"};

std::string_view CellName(CellKind kind) {
  switch (kind) {
    case CellKind::kSimpleRNN:
      return "simple_rnn_cell";
    case CellKind::kLSTM:
      return "lstm_cell";
    case CellKind::kGRU:
      return "gru_cell";
  }
  return "";
}

}  // namespace

Status ExpectType(std::string_view what, const TensorType& type, const TensorType& expected) {
  if (type == expected) return OkStatus();
  return InvalidArgument("expected ", what, " ", expected.ToString(), ", got ", type.ToString());
}

int RecurrentArguments::gates() const {
  switch (kind) {
    case CellKind::kSimpleRNN:
      return 1;
    case CellKind::kLSTM:
      return 4;
    case CellKind::kGRU:
      return 3;
  }
  return 0;
}

void RecurrentArguments::VisitCell(ArgumentVisitor& visitor) {
  visitor.Integer("units", units, {.least = 1, .expected = kPositive.expected, .required = true});
  visitor.Activation("activation", activation, /*required=*/false);
  if (kind != CellKind::kSimpleRNN)
    visitor.Activation("recurrent_activation", recurrent_activation, /*required=*/false);
  visitor.Flag("use_bias", use_bias);
  if (kind == CellKind::kLSTM) visitor.Flag("unit_forget_bias", unit_forget_bias);
  if (kind == CellKind::kGRU) visitor.Flag("reset_after", reset_after);
  visitor.Initializer("kernel_initializer", kernel_initializer);
  visitor.Initializer("recurrent_initializer", recurrent_initializer);
  visitor.Initializer("bias_initializer", bias_initializer);
  visitor.Rules("kernel", kernel_rules);
  visitor.Rules("recurrent", recurrent_rules);
  visitor.Rules("bias", bias_rules);
  visitor.Number("dropout", dropout, kDropoutRate);
  visitor.Number("recurrent_dropout", recurrent_dropout, kDropoutRate);
  visitor.Optional("seed", seed);
  visitor.Ignored("implementation");  // only affects how Keras computes the result
}

void RecurrentArguments::Visit(ArgumentVisitor& visitor) {
  VisitCell(visitor);
  visitor.Flag("return_sequences", return_sequences);
  visitor.Flag("return_state", return_state);
  visitor.Flag("go_backwards", go_backwards);
  visitor.Only("stateful", "false");
  visitor.Flag("zero_output_for_mask", zero_output_for_mask);
  visitor.Retired("time_major", "false");
  // These arguments only affect how Keras computes the result.
  for (const char* name : {"unroll", "use_cudnn"}) visitor.Ignored(name);
}

void RecurrentInputs::Visit(CallVisitor& visitor) {
  std::vector<int> states;
  visitor.First("sequences", sequences, states);
  visitor.Inputs("initial_state", initial_state);
  if (!states.empty() && initial_state.empty()) {
    initial_state = std::move(states);
    listed = true;
  }
  visitor.Input("mask", mask);
}

graph::Output RecurrentInputs::MaskOf(const LayerCall& call) const {
  if (mask != kNoInput) return call.inputs[static_cast<size_t>(mask)];
  const bool used = initial_state.empty() || listed;
  return used ? call.mask(static_cast<size_t>(sequences)) : graph::Output();
}

graph::Output RecurrentInputs::SequencesMaskOf(const LayerCall& call) const {
  return mask == kNoInput ? call.mask(static_cast<size_t>(sequences)) : MaskOf(call);
}

StatusOr<std::vector<TensorType>> RecurrentTypes(const RecurrentArguments& arguments,
                                                 const RecurrentInputs& inputs,
                                                 std::span<const TensorType> in) {
  const size_t given = 1 + inputs.initial_state.size() + (inputs.mask == kNoInput ? 0 : 1);
  if (in.size() != given) return InvalidArgument("expected ", given, " inputs, got ", in.size());
  const TensorType& x = in[static_cast<size_t>(inputs.sequences)];
  RETURN_IF_ERROR(ExpectOneInput({&x, 1}, false));
  if (x.shape.rank() != 2 || x.shape.num_elements() == 0) {
    return InvalidArgument("expected sequences of shape [steps,features], got ",
                           x.shape.ToString());
  }
  const TensorType state{x.dtype, {arguments.units}};
  const auto states = static_cast<size_t>(arguments.states());
  if (!inputs.initial_state.empty() && inputs.initial_state.size() != states) {
    return InvalidArgument("expected ", states, " initial states, got ",
                           inputs.initial_state.size());
  }
  for (int index : inputs.initial_state) {
    if (index == kNoInput) return InvalidArgument("an initial state is missing");
    RETURN_IF_ERROR(ExpectType("an initial state", in[static_cast<size_t>(index)], state));
  }
  if (inputs.mask != kNoInput) {
    RETURN_IF_ERROR(ExpectType("a mask", in[static_cast<size_t>(inputs.mask)],
                               {DType::kBool, {x.shape.dim(0)}}));
  }
  std::vector<TensorType> out = {state};
  if (arguments.return_sequences) out[0].shape = {x.shape.dim(0), arguments.units};
  if (arguments.return_state) out.insert(out.end(), states, state);
  return out;
}

std::vector<VariableSpec> RecurrentVariables(const RecurrentArguments& arguments,
                                             int64_t features) {
  const int64_t width = arguments.gates() * arguments.units;
  const std::string cell(CellName(arguments.kind));
  std::vector<VariableSpec> variables;
  variables.push_back({.name = cell + "/kernel",
                       .shape = {features, width},
                       .initializer = arguments.kernel_initializer,
                       .rules = arguments.kernel_rules});
  variables.push_back({.name = cell + "/recurrent_kernel",
                       .shape = {arguments.units, width},
                       .initializer = arguments.recurrent_initializer,
                       .rules = arguments.recurrent_rules});
  if (!arguments.use_bias) return variables;
  const bool two = arguments.kind == CellKind::kGRU && arguments.reset_after;
  Initializer initializer = arguments.bias_initializer;
  if (arguments.kind == CellKind::kLSTM && arguments.unit_forget_bias)
    initializer.ones = {arguments.units, 2 * arguments.units};
  variables.push_back({.name = cell + "/bias",
                       .shape = two ? Shape{2, width} : Shape{width},
                       .initializer = initializer,
                       .rules = arguments.bias_rules});
  return variables;
}

}  // namespace tfjob::model::layers
