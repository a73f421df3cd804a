// Appends the ops of recurrent layers. The products with the kernel are computed for all steps
// before the loop. The gates are separate values, which avoids slicing and joining within the loop.
#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/layers/recurrent.h"
#include "runtime/model/layers/step_mask.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

class RecurrentPass {
 public:
  RecurrentPass(const RecurrentArguments& arguments, const RecurrentInputs& inputs, LayerCall& call,
                bool flip)
      : a_(arguments),
        inputs_(inputs),
        call_(call),
        b_(call.b),
        x_(call.inputs[static_cast<size_t>(inputs.sequences)]),
        batch_(b_.shape(x_).dim(0)),
        steps_(b_.shape(x_).dim(1)),
        flip_(flip),
        scan_(b_, steps_),
        body_(scan_.body()) {}

  std::vector<Output> Run() {
    AddStates();
    AddGates();
    std::vector<Output> next = Step();
    const StepMask mask{.mask = inputs_.MaskOf(call_),
                        .steps = steps_,
                        .go_backwards = a_.go_backwards,
                        .zero_output = a_.zero_output_for_mask,
                        .return_sequences = a_.return_sequences,
                        .from_zeros = inputs_.initial_state.empty()};
    size_t last_output = 0;  // the state that contains the last output
    const Output output = mask.Apply(scan_, states_, next, last_output);
    for (size_t s = 0; s < next.size(); ++s) scan_.SetNext(static_cast<int>(s), next[s]);
    // Without return_sequences, the output is the final value of a state: either the first state,
    // or an additional state that contains the latest output.
    if (a_.return_sequences) scan_.Stack(output, flip_);
    const graph::ScanBuilder::Results results = scan_.Finish();
    if (!b_.ok()) return {};
    std::vector<Output> outputs;
    outputs.push_back(a_.return_sequences ? Transpose(b_, results.outputs[0], {1, 0, 2})
                                          : results.states[last_output]);
    for (int s = 0; a_.return_state && s < a_.states(); ++s)
      outputs.push_back(results.states[static_cast<size_t>(s)]);
    return outputs;
  }

 private:
  Output Zeros() { return Fill(b_, b_.dtype(x_), {batch_, a_.units}, 0); }

  void AddStates() {
    for (int s = 0; s < a_.states(); ++s) {
      const bool given = !inputs_.initial_state.empty();
      states_.push_back(scan_.State(
          given ? call_.inputs[static_cast<size_t>(inputs_.initial_state[static_cast<size_t>(s)])]
                : Zeros()));
    }
  }

  // Returns a dropout mask: the result of Dropout on ones of shape [batch,columns].
  Output DropoutMask(double rate, int64_t columns) {
    const Output ones = Fill(b_, b_.dtype(x_), {batch_, columns}, 1);
    return graph::Dropout(b_, ones, call_.step, call_.seed, rate, call_.replica);
  }

  // Returns the columns of a variable that belong to one gate.
  Output GateOf(Output variable, int gate) {
    if (a_.gates() == 1) return variable;
    std::vector<int64_t> size = b_.shape(variable).dims();
    std::vector<int64_t> begin(size.size(), 0);
    size.back() = a_.units;
    begin.back() = gate * a_.units;
    return Slice(b_, variable, std::move(begin), std::move(size));
  }

  // Returns row 0 or 1 of the two biases of GRU.
  Output BiasRow(int row) {
    const int64_t width = a_.gates() * a_.units;
    return graph::Reshape(b_, Slice(b_, call_.variables[2], {row, 0}, {1, width}), {width});
  }

  bool two_biases() const { return a_.use_bias && a_.kind == CellKind::kGRU && a_.reset_after; }

  // Adds, for each gate, x·kernel + bias as a sequence, and the gate's part of the recurrent kernel
  // as an invariant.
  void AddGates() {
    const int64_t features = b_.shape(x_).dim(2);
    const bool per_gate = a_.recurrent_dropout > 0;
    const Output time_major = Transpose(b_, x_, {1, 0, 2});
    const Output bias = !a_.use_bias ? Output() : two_biases() ? BiasRow(0) : call_.variables[2];
    Output rows;
    for (int g = 0; g < a_.gates(); ++g) {
      if (g == 0 || (per_gate && a_.dropout > 0 && call_.training)) {
        Output x = time_major;
        if (call_.training && a_.dropout > 0) x = Mul(b_, x, DropoutMask(a_.dropout, features));
        rows = graph::Reshape(b_, x, {steps_ * batch_, features});
      }
      Output gate = MatMul(b_, rows, GateOf(call_.variables[0], g));
      if (bias.valid()) gate = BiasAdd(b_, gate, GateOf(bias, g));
      gate = graph::Reshape(b_, gate, {steps_, batch_, a_.units});
      from_x_.push_back(scan_.Sequence(gate, a_.go_backwards));
      kernels_.push_back(scan_.Invariant(GateOf(call_.variables[1], g)));
      dropped_.push_back(call_.training && per_gate
                             ? scan_.Invariant(DropoutMask(a_.recurrent_dropout, a_.units))
                             : Output());
      if (two_biases()) recurrent_bias_.push_back(scan_.Invariant(GateOf(BiasRow(1), g)));
    }
  }

  // Appends h·recurrent_kernel for one gate, plus the gate's recurrent bias, to the body.
  Output FromState(size_t gate, Output h) {
    if (dropped_[gate].valid()) h = Mul(body_, h, dropped_[gate]);
    return Product(gate, h);
  }
  Output Product(size_t gate, Output h) {
    const Output product = MatMul(body_, h, kernels_[gate]);
    return two_biases() ? BiasAdd(body_, product, recurrent_bias_[gate]) : product;
  }

  Output Activation(Output z) { return Activate(body_, a_.activation, z); }
  Output Gate(size_t gate, Output h) {
    return Activate(body_, a_.recurrent_activation,
                    graph::Add(body_, from_x_[gate], FromState(gate, h)));
  }

  // Returns the states after a step, ignoring the mask.
  std::vector<Output> Step() {
    const Output h = states_[0];
    switch (a_.kind) {
      case CellKind::kSimpleRNN:
        return {Activation(graph::Add(body_, from_x_[0], FromState(0, h)))};
      case CellKind::kLSTM: {
        const Output i = Gate(0, h), f = Gate(1, h);
        const Output g = Activation(graph::Add(body_, from_x_[2], FromState(2, h)));
        const Output o = Gate(3, h);
        const Output c = graph::Add(body_, Mul(body_, f, states_[1]), Mul(body_, i, g));
        return {Mul(body_, o, Activation(c)), c};
      }
      case CellKind::kGRU:
        return {GruState(h)};
    }
    return {};
  }

  Output GruState(Output h) {
    const Output z = Gate(0, h), r = Gate(1, h);
    Output recurrent;
    if (a_.reset_after) {
      recurrent = Mul(body_, r, FromState(2, h));
    } else {
      const Output kept = dropped_[2].valid() ? Mul(body_, h, dropped_[2]) : h;
      recurrent = Product(2, Mul(body_, r, kept));
    }
    const Output candidate = Activation(graph::Add(body_, from_x_[2], recurrent));
    const Output one = Scalar(body_, body_.dtype(h), 1);
    return graph::Add(body_, Mul(body_, z, h), Mul(body_, Sub(body_, one, z), candidate));
  }

  const RecurrentArguments& a_;
  const RecurrentInputs& inputs_;
  LayerCall& call_;
  Builder& b_;
  const Output x_;
  const int64_t batch_, steps_;
  const bool flip_;
  graph::ScanBuilder scan_;
  Builder& body_;
  // Values of the body. states_ has one element per state; the other lists have one element per
  // gate (recurrent_bias_ may be empty).
  std::vector<Output> states_, from_x_, kernels_, dropped_, recurrent_bias_;
};

}  // namespace

std::vector<graph::Output> RecurrentOutputs(const RecurrentArguments& arguments,
                                            const RecurrentInputs& inputs, LayerCall& call,
                                            bool flip) {
  if (arguments.return_sequences) call.output_masks = {inputs.SequencesMaskOf(call)};
  return RecurrentPass(arguments, inputs, call, flip).Run();
}

}  // namespace tfjob::model::layers
