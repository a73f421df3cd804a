#include "runtime/model/layers/conv_lstm.h"

#include <numeric>

#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/model/layers/step_mask.h"
#include "runtime/model/layers/volume.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr int64_t kGates = 4;

// Returns the shape of one step of a sequence.
Shape StepOf(const Shape& sequence) {
  return Shape({sequence.dims().begin() + 1, sequence.dims().end()});
}

std::string_view StepAxes(int rank) {
  constexpr std::string_view kAxes[] = {"length", "height,width", "depth,height,width"};
  return kAxes[rank - 1];
}

// Convolves values of one rank. Rows are treated as images, so that all values have the shape
// [batch,height,width,channels] or, if the rank is 3, [batch,depth,height,width,channels].
template <int kRank>
struct Convolution {
  using WindowType = Window;

  static StatusOr<Window> Over(const WindowArguments& window, const Shape& example) {
    return window.Over(example);
  }
  // Returns the shape of one example, and the shape of one result.
  static Shape Example(const Shape& step) { return ExampleOf(ImageOf(step)); }
  static Shape Count(const Window& window, const Shape& step, int64_t channels) {
    const Shape in = Example(step);
    return {window.height.Count(in.dim(0)), window.width.Count(in.dim(1)), channels};
  }
  // Returns the window of a convolution that preserves the size of examples of this shape.
  static Window Preserving(const std::vector<int64_t>& size, const Shape& in) {
    Window window;
    if (kRank == 2) window.height = WindowAxis{.size = size[0]}.Same(in.dim(0));
    window.width = WindowAxis{.size = size.back()}.Same(in.dim(1));
    return window;
  }
  // Reshapes a kernel [size…,in,out] to a filter.
  static Output Filter(Builder& b, Output kernel) {
    const Shape shape = b.shape(kernel);
    return graph::Reshape(
        b, kernel, {kRank == 1 ? 1 : shape.dim(0), shape.dim(-3), shape.dim(-2), shape.dim(-1)});
  }
  static Output Apply(Builder& b, Output x, Output filter, const Window& window) {
    return graph::Conv2D(b, x, filter, window);
  }
};

template <>
struct Convolution<3> {
  using WindowType = VolumeWindow;

  static StatusOr<VolumeWindow> Over(const WindowArguments& window, const Shape& example) {
    ASSIGN_OR_RETURN(const VolumeWindow volume, VolumeWindowOver(window, example));
    RETURN_IF_ERROR(CheckDepth(volume));
    return volume;
  }
  static Shape Example(const Shape& step) { return step; }
  static Shape Count(const VolumeWindow& window, const Shape& step, int64_t channels) {
    return window.Count(step, channels);
  }
  static VolumeWindow Preserving(const std::vector<int64_t>& size, const Shape& in) {
    const auto axis = [&](int i) {
      return WindowAxis{.size = size[static_cast<size_t>(i)]}.Same(in.dim(i));
    };
    return {.depth = axis(0), .plane = {.height = axis(1), .width = axis(2)}};
  }
  static Output Filter(Builder&, Output kernel) { return kernel; }
  static Output Apply(Builder& b, Output x, Output filter, const VolumeWindow& window) {
    return ConvolvedVolume(b, x, filter, window, /*groups=*/1);
  }
};

// Returns the shape of one example of a state, as Convolution treats it.
template <int kRank>
StatusOr<Shape> StateShape(const ConvLSTM<kRank>& layer, const Shape& sequence) {
  if (sequence.rank() != kRank + 2 || sequence.CheckedElements().value_or(0) == 0) {
    return InvalidArgument("expected sequences of shape [steps,", StepAxes(kRank),
                           ",channels], got ", sequence.ToString());
  }
  RETURN_IF_ERROR(ExpectNotBoth(layer.window));
  const Shape step = StepOf(sequence);
  ASSIGN_OR_RETURN(const auto window, Convolution<kRank>::Over(layer.window, step));
  return Convolution<kRank>::Count(window, step, layer.filters);
}

// Returns the shape of one example of a state in the model, where rows are not treated as images.
template <int kRank>
Shape InModel(const Shape& state) {
  return kRank == 1 ? StepOf(state) : state;
}

// Appends the ops for one call of a layer.
template <int kRank>
class ConvLstmPass {
 public:
  ConvLstmPass(const ConvLSTM<kRank>& layer, LayerCall& call, bool flip)
      : layer_(layer),
        call_(call),
        b_(call.b),
        x_(call.inputs[static_cast<size_t>(layer.inputs.sequences)]),
        in_(b_.shape(x_)),
        step_(StepOf(ExampleOf(in_))),
        state_(Batched(in_.dim(0), *StateShape(layer, ExampleOf(in_)))),
        flip_(flip),
        scan_(b_, in_.dim(1)),
        body_(scan_.body()) {}

  std::vector<Output> Run() {
    const Output h = State(0), c = State(1);
    const Output from_x = scan_.Sequence(FromInputs(), layer_.go_backwards);
    const Output kernel = scan_.Invariant(Convolved::Filter(b_, call_.variables[1]));
    std::vector<Output> dropped = Dropped(layer_.recurrent_dropout, state_);
    for (Output& mask : dropped) mask = scan_.Invariant(mask);
    const WindowType window = Convolved::Preserving(layer_.window.size, ExampleOf(state_));
    const Output z = graph::Add(body_, from_x, Gates(body_, h, kernel, dropped, window));
    const Output i = Gate(z, 0), f = Gate(z, 1), o = Gate(z, 3);
    const Output g = Activate(body_, layer_.activation, GateOf(body_, z, 2));
    const Output next_c = graph::Add(body_, Mul(body_, f, c), Mul(body_, i, g));
    const Output next_h = Mul(body_, o, Activate(body_, layer_.activation, next_c));
    std::vector<Output> next = {next_h, next_c};
    const StepMask mask{.mask = layer_.inputs.MaskOf(call_),
                        .steps = in_.dim(1),
                        .go_backwards = layer_.go_backwards,
                        .zero_output = layer_.zero_output_for_mask,
                        .return_sequences = layer_.return_sequences,
                        .from_zeros = layer_.inputs.initial_state.empty()};
    size_t last_output = 0;
    const Output output = mask.Apply(scan_, {h, c}, next, last_output);
    for (size_t s = 0; s < next.size(); ++s) scan_.SetNext(static_cast<int>(s), next[s]);
    if (layer_.return_sequences) scan_.Stack(output, flip_);
    return Outputs(scan_.Finish(), last_output);
  }

 private:
  using Convolved = Convolution<kRank>;
  using WindowType = typename Convolved::WindowType;

  Output State(size_t number) {
    const std::vector<int>& given = layer_.inputs.initial_state;
    const Output initial =
        given.empty()
            ? Fill(b_, b_.dtype(x_), state_, 0)
            : graph::Reshape(b_, call_.inputs[static_cast<size_t>(given[number])], state_);
    return scan_.State(initial);
  }

  // Swaps the axes of the batch and of the steps, which are the first two.
  Output Swapped(Output x) {
    std::vector<int64_t> order(b_.shape(x).dims().size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[0], order[1]);
    return Transpose(b_, x, order);
  }

  // Returns the convolution of the inputs of all steps with the kernel: [steps,batch,…,4·filters].
  Output FromInputs() {
    const Shape example = Convolved::Example(step_);
    const int64_t batch = in_.dim(0), steps = in_.dim(1);
    std::vector<Output> dropped = Dropped(layer_.dropout, Batched(batch, example));
    for (Output& mask : dropped) mask = ForSteps(mask, steps);
    const Output all = graph::Reshape(b_, Swapped(x_), Batched(steps * batch, example));
    Output gates = Gates(b_, all, Convolved::Filter(b_, call_.variables[0]), dropped,
                         *Convolved::Over(layer_.window, step_));
    if (layer_.use_bias) gates = BiasAdd(b_, gates, call_.variables[2]);
    std::vector<int64_t> dims = state_.dims();
    dims.back() *= kGates;
    return graph::Reshape(b_, gates, Batched(steps, Shape(std::move(dims))));
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
    return graph::Reshape(b_, repeated, Batched(steps * shape.dim(0), ExampleOf(shape)));
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

  // Convolves the values with the kernels of all gates. Uses a single convolution if no elements
  // are dropped.
  Output Gates(Builder& b, Output x, Output kernel, const std::vector<Output>& dropped,
               const WindowType& window) {
    if (!x.valid() || !kernel.valid()) return Output();
    if (dropped.empty()) return Convolved::Apply(b, x, kernel, window);
    std::vector<Output> gates;
    for (int64_t gate = 0; gate < kGates; ++gate) {
      const Output kept = Mul(b, x, dropped[static_cast<size_t>(gate)]);
      gates.push_back(Convolved::Apply(b, kept, GateOf(b, kernel, gate), window));
    }
    return Concat(b, std::move(gates), -1);
  }

  std::vector<Output> Outputs(const graph::ScanBuilder::Results& results, size_t last_output) {
    if (!b_.ok()) return {};
    const Shape state = InModel<kRank>(ExampleOf(state_));
    const auto batch = Batched(in_.dim(0), state);
    std::vector<Output> outputs;
    if (layer_.return_sequences) {
      outputs.push_back(graph::Reshape(b_, Swapped(results.outputs[0]),
                                       Batched(in_.dim(0), Batched(in_.dim(1), state))));
    } else {
      outputs.push_back(graph::Reshape(b_, results.states[last_output], batch));
    }
    for (size_t s = 0; layer_.return_state && s < 2; ++s)
      outputs.push_back(graph::Reshape(b_, results.states[s], batch));
    return outputs;
  }

  const ConvLSTM<kRank>& layer_;
  LayerCall& call_;
  Builder& b_;
  const Output x_;
  const Shape in_;     // [batch,steps,…]
  const Shape step_;   // the shape of one step of an example
  const Shape state_;  // the shape of a state, as Convolution treats it
  const bool flip_;
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
  visitor.Flag("zero_output_for_mask", zero_output_for_mask);
  visitor.Retired("time_major", "false");
  visitor.Ignored("unroll");  // only affects how Keras computes the result
}

template <int kRank>
StatusOr<std::vector<TensorType>> ConvLSTM<kRank>::OutputTypes(
    std::span<const TensorType> in) const {
  const size_t given = 1 + inputs.initial_state.size() + (inputs.mask == kNoInput ? 0 : 1);
  if (in.size() != given) return InvalidArgument("expected ", given, " inputs, got ", in.size());
  const TensorType& x = in[static_cast<size_t>(inputs.sequences)];
  RETURN_IF_ERROR(ExpectOneInput({&x, 1}, false));
  ASSIGN_OR_RETURN(const Shape treated, StateShape(*this, x.shape));
  const Shape shape = InModel<kRank>(treated);
  const TensorType state{x.dtype, shape};
  if (!inputs.initial_state.empty() && inputs.initial_state.size() != 2)
    return InvalidArgument("expected 2 initial states, got ", inputs.initial_state.size());
  for (const int index : inputs.initial_state) {
    if (index == kNoInput) return InvalidArgument("an initial state is missing");
    RETURN_IF_ERROR(ExpectType("an initial state", in[static_cast<size_t>(index)], state));
  }
  if (inputs.mask != kNoInput) {
    RETURN_IF_ERROR(ExpectType("a mask", in[static_cast<size_t>(inputs.mask)],
                               {DType::kBool, {x.shape.dim(0)}}));
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
std::vector<graph::Output> ConvLSTM<kRank>::Outputs(LayerCall& call, bool flip) const {
  if (return_sequences) call.output_masks = {inputs.SequencesMaskOf(call)};
  return ConvLstmPass<kRank>(*this, call, flip).Run();
}

template struct ConvLSTM<1>;
template struct ConvLSTM<2>;
template struct ConvLSTM<3>;

}  // namespace tfjob::model::layers
