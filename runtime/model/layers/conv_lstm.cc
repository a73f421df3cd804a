#include "runtime/model/layers/conv_lstm.h"

#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr int64_t kGates = 4;

// Returns the shape of one step of a sequence.
Shape StepOf(const Shape& sequence) {
  return Shape({sequence.dims().begin() + 1, sequence.dims().end()});
}

// Returns the shape of the states.
template <int kRank>
StatusOr<Shape> StateShape(const ConvLSTM<kRank>& layer, const Shape& sequence) {
  if (sequence.rank() != kRank + 2 || sequence.CheckedElements().value_or(0) == 0) {
    return InvalidArgument("expected sequences of shape ",
                           kRank == 1 ? "[steps,length,channels]" : "[steps,height,width,channels]",
                           ", got ", sequence.ToString());
  }
  RETURN_IF_ERROR(ExpectNotBoth(layer.window));
  const Shape step = StepOf(sequence);
  ASSIGN_OR_RETURN(const Window window, layer.window.Over(step));
  const Shape image = ImageOf(step);
  return ExampleShape(kRank + 1, window.height.Count(image.dim(1)),
                      window.width.Count(image.dim(2)), layer.filters);
}

// Appends the ops for one call of a layer. All values are treated as images
// [batch,height,width,channels].
template <int kRank>
class ConvLstmPass {
 public:
  ConvLstmPass(const ConvLSTM<kRank>& layer, LayerCall& call)
      : layer_(layer),
        call_(call),
        b_(call.b),
        x_(call.inputs[static_cast<size_t>(layer.inputs.sequences)]),
        in_(b_.shape(x_)),
        state_(ImageOf(*StateShape(layer, ExampleOf(in_)))),
        scan_(b_, in_.dim(1)),
        body_(scan_.body()) {}

  std::vector<Output> Run() {
    const Output h = State(0), c = State(1);
    const Output from_x = scan_.Sequence(FromInputs(), layer_.go_backwards);
    const Output kernel = scan_.Invariant(Filter(call_.variables[1]));
    std::vector<Output> dropped = Dropped(layer_.recurrent_dropout, StateImages());
    for (Output& mask : dropped) mask = scan_.Invariant(mask);
    const Output z = graph::Add(body_, from_x, Gates(body_, h, kernel, dropped, StateWindow()));
    const Output i = Gate(z, 0), f = Gate(z, 1), o = Gate(z, 3);
    const Output g = Activate(body_, layer_.activation, GateOf(body_, z, 2));
    const Output next_c = graph::Add(body_, Mul(body_, f, c), Mul(body_, i, g));
    const Output next_h = Mul(body_, o, Activate(body_, layer_.activation, next_c));
    scan_.SetNext(0, next_h);
    scan_.SetNext(1, next_c);
    if (layer_.return_sequences) scan_.Stack(next_h);
    return Outputs(scan_.Finish());
  }

 private:
  int64_t batch() const { return in_.dim(0); }
  Shape StateImages() const { return {batch(), state_.dim(1), state_.dim(2), state_.dim(3)}; }

  Output State(size_t number) {
    const std::vector<int>& given = layer_.inputs.initial_state;
    const Output initial =
        given.empty()
            ? Fill(b_, b_.dtype(x_), StateImages(), 0)
            : graph::Reshape(b_, call_.inputs[static_cast<size_t>(given[number])], StateImages());
    return scan_.State(initial);
  }

  // Reshapes a kernel [size…,in,out] to a filter [height,width,in,out].
  Output Filter(Output kernel) {
    const Shape shape = b_.shape(kernel);
    return graph::Reshape(
        b_, kernel, {kRank == 1 ? 1 : shape.dim(0), shape.dim(-3), shape.dim(-2), shape.dim(-1)});
  }

  // Returns the convolution of the inputs of all steps with the kernel:
  // [steps,batch,height,width,4·filters].
  Output FromInputs() {
    std::vector<int64_t> order(in_.dims().size());
    for (size_t axis = 0; axis < order.size(); ++axis) order[axis] = static_cast<int64_t>(axis);
    std::swap(order[0], order[1]);
    const Shape step = StepOf(ExampleOf(in_));
    const Shape image = ImageOf(step);
    const int64_t steps = in_.dim(1);
    std::vector<Output> dropped =
        Dropped(layer_.dropout, {batch(), image.dim(1), image.dim(2), image.dim(3)});
    for (Output& mask : dropped) mask = ForSteps(mask, steps);
    const Output images = graph::Reshape(
        b_, Transpose(b_, x_, order), {steps * batch(), image.dim(1), image.dim(2), image.dim(3)});
    Output gates =
        Gates(b_, images, Filter(call_.variables[0]), dropped, *layer_.window.Over(step));
    if (layer_.use_bias) gates = BiasAdd(b_, gates, call_.variables[2]);
    return graph::Reshape(b_, gates,
                          {steps, batch(), state_.dim(1), state_.dim(2), kGates * layer_.filters});
  }

  // Returns one dropout mask per gate, or an empty list if no elements are dropped.
  std::vector<Output> Dropped(double rate, const Shape& shape) {
    std::vector<Output> masks;
    for (int64_t gate = 0; call_.training && rate > 0 && gate < kGates; ++gate) {
      const Output ones = Fill(b_, b_.dtype(x_), shape, 1);
      masks.push_back(graph::Dropout(b_, ones, call_.step, call_.seed, rate, call_.replica));
    }
    return masks;
  }

  // Repeats the mask of a batch for each step.
  Output ForSteps(Output mask, int64_t steps) {
    if (!mask.valid()) return mask;
    const Shape shape = b_.shape(mask);
    const Output repeated = BroadcastTo(b_, graph::Reshape(b_, mask, {1, shape.num_elements()}),
                                        {steps, shape.num_elements()});
    return graph::Reshape(b_, repeated,
                          {steps * shape.dim(0), shape.dim(1), shape.dim(2), shape.dim(3)});
  }

  // Returns the channels that belong to one gate.
  Output GateOf(Builder& b, Output gates, int64_t gate) {
    if (!gates.valid()) return gates;
    std::vector<int64_t> size = b.shape(gates).dims(), begin(size.size());
    size.back() = layer_.filters;
    begin.back() = gate * layer_.filters;
    return Slice(b, gates, std::move(begin), std::move(size));
  }
  Output Gate(Output z, int64_t gate) {
    return Activate(body_, layer_.recurrent_activation, GateOf(body_, z, gate));
  }

  // Convolves the images with the kernels of all gates. Uses a single convolution if no elements
  // are dropped.
  Output Gates(Builder& b, Output images, Output kernel, const std::vector<Output>& dropped,
               const Window& window) {
    if (dropped.empty()) return graph::Conv2D(b, images, kernel, window);
    std::vector<Output> gates;
    for (int64_t gate = 0; gate < kGates; ++gate) {
      const Output kept = Mul(b, images, dropped[static_cast<size_t>(gate)]);
      gates.push_back(graph::Conv2D(b, kept, GateOf(b, kernel, gate), window));
    }
    return Concat(b, std::move(gates), -1);
  }

  // Returns the window of a convolution that preserves the size of the state.
  Window StateWindow() const {
    const std::vector<int64_t>& size = layer_.window.size;
    Window window;
    if (kRank == 2) window.height = WindowAxis{.size = size[0]}.Same(state_.dim(1));
    window.width = WindowAxis{.size = size.back()}.Same(state_.dim(2));
    return window;
  }

  std::vector<Output> Outputs(const graph::ScanBuilder::Results& results) {
    if (!b_.ok()) return {};
    std::vector<Output> outputs;
    if (layer_.return_sequences) {
      const Output stacked = Transpose(b_, results.outputs[0], {1, 0, 2, 3, 4});
      const int64_t steps = in_.dim(1);
      outputs.push_back(
          kRank == 2 ? stacked
                     : graph::Reshape(b_, stacked, {batch(), steps, state_.dim(2), state_.dim(3)}));
    } else {
      outputs.push_back(Examples(b_, results.states[0], kRank + 1));
    }
    for (size_t s = 0; layer_.return_state && s < 2; ++s)
      outputs.push_back(Examples(b_, results.states[s], kRank + 1));
    return outputs;
  }

  const ConvLSTM<kRank>& layer_;
  LayerCall& call_;
  Builder& b_;
  const Output x_;
  const Shape in_;     // [batch,steps,…]
  const Shape state_;  // [1,height,width,filters]
  graph::ScanBuilder scan_;
  Builder& body_;
};

}  // namespace

template <int kRank>
void ConvLSTM<kRank>::Arguments(ArgumentVisitor& visitor) {
  constexpr std::string_view kPerAxis = "numbers of at least 1, one per axis";
  constexpr NumberRule kRate = {
      .least = 0, .most = 1, .below_most = true, .expected = "a number in [0, 1)"};
  visitor.Integer("filters", filters,
                  {.least = 1, .expected = kPositive.expected, .required = true});
  visitor.PerAxis("kernel_size", window.size, {.least = 1, .expected = kPerAxis, .required = true});
  visitor.PerAxis("strides", window.strides, {.least = 1, .expected = kPerAxis});
  visitor.Choice("padding", window.padding, std::span(kPaddings).first(2));
  visitor.Only("data_format", "\"channels_last\"");
  visitor.PerAxis("dilation_rate", window.dilations, {.least = 1, .expected = kPerAxis});
  visitor.Activation("activation", activation, /*required=*/false);
  visitor.Activation("recurrent_activation", recurrent_activation, /*required=*/false);
  visitor.Flag("use_bias", use_bias);
  visitor.Flag("unit_forget_bias", unit_forget_bias);
  visitor.Initializer("kernel_initializer", kernel_initializer);
  visitor.Initializer("recurrent_initializer", recurrent_initializer);
  visitor.Initializer("bias_initializer", bias_initializer);
  visitor.Rules("kernel", kernel_rules);
  visitor.Rules("recurrent", recurrent_rules);
  visitor.Rules("bias", bias_rules);
  visitor.Number("dropout", dropout, kRate);
  visitor.Number("recurrent_dropout", recurrent_dropout, kRate);
  visitor.Optional("seed", seed);
  visitor.Flag("return_sequences", return_sequences);
  visitor.Flag("return_state", return_state);
  visitor.Flag("go_backwards", go_backwards);
  visitor.Only("stateful", "false");
  visitor.Ignored("zero_output_for_mask");  // there are no masks
  visitor.Retired("time_major", "false");
  visitor.Ignored("unroll");  // only affects how Keras computes the result
}

template <int kRank>
StatusOr<std::vector<TensorType>> ConvLSTM<kRank>::OutputTypes(
    std::span<const TensorType> in) const {
  if (inputs.mask != kNoInput) return InvalidArgument("expected no mask: masks are not supported");
  if (in.size() != 1 + inputs.initial_state.size())
    return InvalidArgument("expected ", 1 + inputs.initial_state.size(), " inputs, got ",
                           in.size());
  const TensorType& x = in[static_cast<size_t>(inputs.sequences)];
  RETURN_IF_ERROR(ExpectOneInput({&x, 1}, false));
  ASSIGN_OR_RETURN(const Shape shape, StateShape(*this, x.shape));
  const TensorType state{x.dtype, shape};
  if (!inputs.initial_state.empty() && inputs.initial_state.size() != 2)
    return InvalidArgument("expected 2 initial states, got ", inputs.initial_state.size());
  for (const int index : inputs.initial_state) {
    if (index == kNoInput) return InvalidArgument("an initial state is missing");
    const TensorType& given = in[static_cast<size_t>(index)];
    if (given != state)
      return InvalidArgument("expected an initial state ", state.ToString(), ", got ",
                             given.ToString());
  }
  std::vector<TensorType> out = {state};
  if (return_sequences) {
    std::vector<int64_t> dims = shape.dims();
    dims.insert(dims.begin(), x.shape.dim(0));
    out[0].shape = Shape(std::move(dims));
  }
  if (return_state) out.insert(out.end(), 2, state);
  return out;
}

template <int kRank>
std::vector<VariableSpec> ConvLSTM<kRank>::Variables(std::span<const TensorType> in) const {
  const auto shape = [&](int64_t channels) {
    std::vector<int64_t> dims = window.size;
    dims.insert(dims.end(), {channels, kGates * filters});
    return Shape(std::move(dims));
  };
  std::vector<VariableSpec> variables;
  variables.push_back({.name = "conv_lstm_cell/kernel",
                       .shape = shape(in[static_cast<size_t>(inputs.sequences)].shape.dim(-1)),
                       .initializer = kernel_initializer,
                       .rules = kernel_rules});
  variables.push_back({.name = "conv_lstm_cell/recurrent_kernel",
                       .shape = shape(filters),
                       .initializer = recurrent_initializer,
                       .rules = recurrent_rules});
  if (!use_bias) return variables;
  Initializer initializer = bias_initializer;
  if (unit_forget_bias) initializer.ones = {filters, 2 * filters};
  variables.push_back({.name = "conv_lstm_cell/bias",
                       .shape = {kGates * filters},
                       .initializer = initializer,
                       .rules = bias_rules});
  return variables;
}

template <int kRank>
std::vector<graph::Output> ConvLSTM<kRank>::Apply(LayerCall& call) const {
  if (inputs.MaskOf(call).valid()) {
    return {call.b.Fail(
        InvalidArgument(kClass, " got a mask of its sequences; masks are not supported"))};
  }
  return ConvLstmPass<kRank>(*this, call).Run();
}

template struct ConvLSTM<1>;
template struct ConvLSTM<2>;

}  // namespace tfjob::model::layers
