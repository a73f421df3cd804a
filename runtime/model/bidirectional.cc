// Treats the recurrent layers alike, whatever their class. Each has the members `inputs`
// (RecurrentInputs) and Outputs(call, flip), and the arguments return_sequences, return_state and
// go_backwards.
#include "runtime/graph/ops.h"
#include "runtime/model/layers/conv_lstm.h"
#include "runtime/model/rnn.h"
#include "runtime/model/wrappers.h"

namespace tfjob::model::layers {
namespace {

using graph::Output;

// Listed in the order of BidirectionalMerge.
constexpr std::string_view kMergeModes[] = {"concat", "sum", "mul", "ave", "null"};

// The flags that a Bidirectional layer reads, and those that it sets in its two layers.
struct Flags {
  bool return_sequences = false, return_state = false, go_backwards = false;
};

// Returns the object that contains the arguments of a recurrent layer.
template <typename L>
auto& ArgumentsIn(L& layer) {
  if constexpr (requires { layer.arguments; }) {
    return layer.arguments;
  } else {
    return layer;
  }
}

// Calls `use` with the recurrent layer. Returns false if the layer is of another class.
template <typename Use>
bool WithRecurrent(const LayerConfig& config, const Use& use) {
  const auto visit = [&](const auto* layer) {
    if (layer != nullptr) use(*layer);
    return layer != nullptr;
  };
  return visit(config.As<LSTM>()) || visit(config.As<GRU>()) || visit(config.As<SimpleRNN>()) ||
         visit(config.As<RNN>()) || visit(config.As<ConvLSTM1D>()) ||
         visit(config.As<ConvLSTM2D>()) || visit(config.As<ConvLSTM3D>());
}

// Returns a copy of a recurrent layer in which `change` has changed the arguments and the inputs.
template <typename Change>
LayerConfig Changed(const LayerConfig& config, const Change& change) {
  LayerConfig changed = config;
  WithRecurrent(config, [&](const auto& layer) {
    auto copy = layer;
    change(ArgumentsIn(copy), copy.inputs);
    changed = LayerConfig(std::move(copy));
  });
  return changed;
}

std::string WithPrefix(std::string_view prefix, std::string_view name) {
  return StrCat(prefix, name.starts_with(prefix) ? name.substr(prefix.size()) : name);
}

// The layer of one direction, with the arguments and the inputs that Keras gives it.
struct Direction {
  Layer layer;
  Flags flags;
  RecurrentInputs inputs;
};

// Returns the forward or the backward layer. If the layer returns all steps, its outputs at masked
// steps are zero, even if the layer's argument zero_output_for_mask is false.
Direction Directed(const Bidirectional& both, bool backward) {
  const Layer& given =
      backward && both.backward_layer != nullptr ? *both.backward_layer : *both.layer;
  const bool copied = backward && both.backward_layer == nullptr;
  Direction direction{given, {}, both.inputs};
  if (!backward) direction.layer.name = WithPrefix("forward_", given.name);
  if (copied) direction.layer.name = WithPrefix("backward_", given.name);
  std::vector<int>& states = direction.inputs.initial_state;
  const auto half = states.begin() + static_cast<std::ptrdiff_t>(states.size() / 2);
  states = backward ? std::vector<int>(half, states.end()) : std::vector<int>(states.begin(), half);
  direction.layer.config = Changed(given.config, [&](auto& arguments, RecurrentInputs& inputs) {
    if (copied) arguments.go_backwards = true;
    arguments.zero_output_for_mask = arguments.return_sequences;
    inputs = direction.inputs;
    direction.flags = {arguments.return_sequences, arguments.return_state, arguments.go_backwards};
  });
  return direction;
}

Status CheckPair(const Bidirectional& both) {
  for (const auto& layer : {both.layer, both.backward_layer}) {
    if (layer == nullptr && layer == both.backward_layer) continue;
    if (layer == nullptr) return InvalidArgument("expected a layer to wrap");
    if (!WithRecurrent(layer->config, [](const auto&) {})) {
      return InvalidArgument("expected a recurrent layer to wrap (SimpleRNN, LSTM, GRU, RNN, ",
                             "ConvLSTM1D, ConvLSTM2D or ConvLSTM3D), got ", Describe(*layer));
    }
  }
  const Flags forward = Directed(both, false).flags, backward = Directed(both, true).flags;
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
  RecurrentInputs inputs{.listed = direction.inputs.listed};
  const auto take = [&](int index) {
    if (index == kNoInput) return kNoInput;
    own.push_back(in[static_cast<size_t>(index)]);
    return static_cast<int>(own.size()) - 1;
  };
  inputs.sequences = take(direction.inputs.sequences);
  for (int state : direction.inputs.initial_state) inputs.initial_state.push_back(take(state));
  inputs.mask = take(direction.inputs.mask);
  const LayerConfig config = Changed(
      direction.layer.config, [&](auto&, RecurrentInputs& renumbered) { renumbered = inputs; });
  auto types = config.OutputTypes(own);
  if (!types.ok()) return Annotate(types.status(), Describe(direction.layer));
  return types;
}

// Returns the variables of one direction. `in` is the type of the sequences.
std::vector<VariableSpec> VariablesOf(const Direction& direction, const TensorType& in) {
  Layer alone = direction.layer;
  alone.config = Changed(alone.config, [](auto&, RecurrentInputs& inputs) { inputs = {}; });
  return model::VariablesOf(alone, {&in, 1});
}

// Returns the type with another size of the last axis.
TensorType WithLast(TensorType type, int64_t size) {
  std::vector<int64_t> dims = type.shape.dims();
  dims.back() = size;
  type.shape = Shape(std::move(dims));
  return type;
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
  const bool concat = merge_mode == BidirectionalMerge::kConcat;
  const bool fits = concat ? WithLast(types[0], 0) == WithLast(backward[0], 0)
                           : merge_mode == BidirectionalMerge::kNone || types[0] == backward[0];
  if (!fits) {
    return InvalidArgument("merge_mode ", kMergeModes[static_cast<size_t>(merge_mode)],
                           " needs layers whose outputs have ",
                           concat ? "shapes that differ only in the last axis" : "equal shapes",
                           ", got ", types[0].ToString(), " and ", backward[0].ToString());
  }
  if (concat) {
    const int64_t last = types[0].shape.dim(-1) + backward[0].shape.dim(-1);
    types[0] = WithLast(types[0], last);
  } else if (merge_mode == BidirectionalMerge::kNone) {
    types.insert(types.begin() + 1, backward[0]);
  }
  types.insert(types.end(), backward.begin() + 1, backward.end());
  return types;
}

std::vector<VariableSpec> Bidirectional::Variables(std::span<const TensorType> in) const {
  const TensorType& x = in[static_cast<size_t>(inputs.sequences)];
  std::vector<VariableSpec> variables = VariablesOf(Directed(*this, false), x);
  for (VariableSpec& variable : VariablesOf(Directed(*this, true), x))
    variables.push_back(std::move(variable));
  return variables;
}

std::vector<Output> Bidirectional::Apply(LayerCall& call) const {
  std::vector<std::vector<Output>> outputs;
  const std::vector<Output> all = call.variables;
  const TensorType sequences = call.ExampleTypes()[static_cast<size_t>(inputs.sequences)];
  auto next = all.begin();
  for (const bool backward : {false, true}) {
    const Direction direction = Directed(*this, backward);
    const graph::NameScope scope(call.b, direction.layer.name);
    const auto count = static_cast<std::ptrdiff_t>(VariablesOf(direction, sequences).size());
    call.variables.assign(next, next + count);
    next += count;
    WithRecurrent(direction.layer.config, [&](const auto& layer) {
      outputs.push_back(layer.Outputs(call, /*flip=*/backward));
    });
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
