#include "runtime/graph/ops.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model::layers {
namespace {

using graph::Output;

// Listed in the order of BidirectionalMerge.
constexpr std::string_view kMergeModes[] = {"concat", "sum", "mul", "ave", "null"};

const RecurrentArguments* ArgumentsOf(const Layer& layer) {
  if (const auto* lstm = layer.config.As<LSTM>()) return &lstm->arguments;
  if (const auto* gru = layer.config.As<GRU>()) return &gru->arguments;
  if (const auto* simple = layer.config.As<SimpleRNN>()) return &simple->arguments;
  return nullptr;
}

LayerConfig WithArguments(const RecurrentArguments& arguments) {
  switch (arguments.kind) {
    case CellKind::kSimpleRNN:
      return SimpleRNN{arguments};
    case CellKind::kLSTM:
      return LSTM{arguments};
    case CellKind::kGRU:
      break;
  }
  return GRU{arguments};
}

std::string WithPrefix(std::string_view prefix, std::string_view name) {
  return StrCat(prefix, name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}

// The layer of one direction, with the arguments that Keras gives it.
struct Direction {
  Layer layer;
  RecurrentArguments arguments;
  RecurrentInputs inputs;
};

// Returns the forward or the backward layer. If the layer returns all steps, its outputs at masked
// steps are zero, even if the layer's argument zero_output_for_mask is false.
Direction Directed(const Bidirectional& both, bool backward) {
  const Layer& given =
      backward && both.backward_layer != nullptr ? *both.backward_layer : *both.layer;
  Direction direction{given, *ArgumentsOf(given), both.inputs};
  direction.arguments.zero_output_for_mask = direction.arguments.return_sequences;
  if (!backward) direction.layer.name = WithPrefix("forward_", given.name);
  if (backward && both.backward_layer == nullptr) {
    direction.arguments.go_backwards = true;
    direction.layer.name = WithPrefix("backward_", given.name);
  }
  direction.layer.config = WithArguments(direction.arguments);
  std::vector<int>& states = direction.inputs.initial_state;
  const auto half = states.begin() + static_cast<std::ptrdiff_t>(states.size() / 2);
  states = backward ? std::vector<int>(half, states.end()) : std::vector<int>(states.begin(), half);
  return direction;
}

Status CheckPair(const Bidirectional& both) {
  for (const auto& layer : {both.layer, both.backward_layer}) {
    if (layer == nullptr && layer == both.backward_layer) continue;
    if (layer == nullptr) return InvalidArgument("expected a layer to wrap");
    if (ArgumentsOf(*layer) == nullptr) {
      return InvalidArgument("expected a SimpleRNN, LSTM or GRU to wrap, got ", Describe(*layer));
    }
  }
  const RecurrentArguments forward = Directed(both, false).arguments;
  const RecurrentArguments backward = Directed(both, true).arguments;
  if (forward.go_backwards == backward.go_backwards)
    return InvalidArgument("expected layers with different go_backwards");
  if (forward.return_sequences != backward.return_sequences ||
      forward.return_state != backward.return_state) {
    return InvalidArgument("expected layers with equal return_sequences and return_state");
  }
  if (both.inputs.initial_state.size() % 2 != 0)
    return InvalidArgument("expected an even number of initial states");
  return OkStatus();
}

// Returns the output types of one direction. `in` contains the inputs of both directions; those of
// the other direction are ignored.
StatusOr<std::vector<TensorType>> TypesOf(const Direction& direction,
                                          std::span<const TensorType> in) {
  std::vector<TensorType> own;
  RecurrentInputs inputs;
  const auto take = [&](int index) {
    if (index == kNoInput) return kNoInput;
    own.push_back(in[static_cast<size_t>(index)]);
    return static_cast<int>(own.size()) - 1;
  };
  inputs.sequences = take(direction.inputs.sequences);
  for (int state : direction.inputs.initial_state) inputs.initial_state.push_back(take(state));
  inputs.mask = take(direction.inputs.mask);
  auto types = RecurrentTypes(direction.arguments, inputs, own);
  if (!types.ok()) return Annotate(types.status(), Describe(direction.layer));
  return types;
}

Output Merged(graph::Builder& b, BidirectionalMerge mode, Output x, Output y) {
  switch (mode) {
    case BidirectionalMerge::kConcat:
      return graph::Concat(b, {x, y}, -1);
    case BidirectionalMerge::kSum:
      return graph::Add(b, x, y);
    case BidirectionalMerge::kMul:
      return graph::Mul(b, x, y);
    case BidirectionalMerge::kAve:
    case BidirectionalMerge::kNone:
      break;
  }
  return graph::Mul(b, graph::Add(b, x, y), Scalar(b, b.dtype(x), 0.5));
}

}  // namespace

void Bidirectional::Arguments(ArgumentVisitor& visitor) {
  visitor.Wrapped("layer", layer, /*required=*/true);
  visitor.Wrapped("backward_layer", backward_layer, /*required=*/false);
  visitor.Choice("merge_mode", merge_mode, kMergeModes);
}

StatusOr<std::vector<TensorType>> Bidirectional::OutputTypes(std::span<const TensorType> in) const {
  RETURN_IF_ERROR(CheckPair(*this));
  ASSIGN_OR_RETURN(std::vector<TensorType> types, TypesOf(Directed(*this, false), in));
  ASSIGN_OR_RETURN(const std::vector<TensorType> backward, TypesOf(Directed(*this, true), in));
  const bool joined = merge_mode == BidirectionalMerge::kConcat;
  if (joined) {
    std::vector<int64_t> dims = types[0].shape.dims();
    dims.back() += backward[0].shape.dim(-1);
    types[0].shape = Shape(std::move(dims));
  } else if (merge_mode == BidirectionalMerge::kNone) {
    types.insert(types.begin() + 1, backward[0]);
  } else if (types[0] != backward[0]) {
    return InvalidArgument("merge_mode ", kMergeModes[static_cast<size_t>(merge_mode)],
                           " needs layers with equally many units");
  }
  types.insert(types.end(), backward.begin() + 1, backward.end());
  return types;
}

std::vector<VariableSpec> Bidirectional::Variables(std::span<const TensorType> in) const {
  const TensorType& x = in[static_cast<size_t>(inputs.sequences)];
  std::vector<VariableSpec> variables = VariablesOf(Directed(*this, false).layer, {&x, 1});
  for (VariableSpec& variable : VariablesOf(Directed(*this, true).layer, {&x, 1}))
    variables.push_back(std::move(variable));
  return variables;
}

std::vector<Output> Bidirectional::Apply(LayerCall& call) const {
  std::vector<std::vector<Output>> outputs;
  const std::vector<Output> all = call.variables;
  auto next = all.begin();
  for (const bool backward : {false, true}) {
    const Direction direction = Directed(*this, backward);
    const graph::NameScope scope(call.b, direction.layer.name);
    const auto count = direction.arguments.use_bias ? 3 : 2;
    call.variables.assign(next, next + count);
    next += count;
    outputs.push_back(RecurrentOutputs(direction.arguments, direction.inputs, call, backward));
    if (!call.b.ok()) return {};
    if (!direction.layer.activity_regularizer.present()) continue;
    for (const Output output : outputs.back()) {
      call.penalties.push_back(
          ActivityPenalty(call.b, direction.layer.activity_regularizer, output));
    }
  }
  call.variables = all;
  const Output x = outputs[0][0], y = outputs[1][0];
  std::vector<Output> merged = {x, y};
  if (merge_mode != BidirectionalMerge::kNone) {
    merged = {Merged(call.b, merge_mode, x, y)};
  } else if (call.output_masks) {
    call.output_masks->push_back((*call.output_masks)[0]);
  }
  for (const std::vector<Output>& states : outputs)
    merged.insert(merged.end(), states.begin() + 1, states.end());
  return merged;
}

}  // namespace tfjob::model::layers
