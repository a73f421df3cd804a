// Defines recurrent layers over sequences [steps,features].
#pragma once

#include <vector>

#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

enum class CellKind { kSimpleRNN, kLSTM, kGRU };

// Contains the arguments of all recurrent layers. A kind of cell ignores arguments that are only
// for other kinds.
struct RecurrentArguments {
  CellKind kind = CellKind::kLSTM;
  int64_t units = 0;
  ActivationKind activation = ActivationKind::kTanh;
  ActivationKind recurrent_activation = ActivationKind::kSigmoid;  // not for SimpleRNN
  bool use_bias = true;
  bool unit_forget_bias = true;  // LSTM: the forget gate's bias starts at 1
  bool reset_after = true;       // GRU: the reset gate applies after the matrix product
  Initializer kernel_initializer = Initializer::GlorotUniform();
  Initializer recurrent_initializer = Initializer::Orthogonal();
  Initializer bias_initializer = Initializer::Zeros();
  WeightRules kernel_rules = {}, recurrent_rules = {}, bias_rules = {};
  // The fractions of the input elements and of the state elements to drop. The same elements are
  // dropped in every step. If recurrent_dropout is set, each gate has its own dropout mask.
  double dropout = 0, recurrent_dropout = 0;
  std::optional<int64_t> seed = {};  // stored but not used: dropout uses the run's seed
  bool return_sequences = false;     // returns the outputs of all steps, not only of the last
  bool return_state = false;         // also returns the states after the last step
  bool go_backwards = false;         // processes and returns the steps from last to first
  // Whether the output of a masked step is 0. If not, it is the output of the previous step.
  bool zero_output_for_mask = false;

  // Lists the arguments of the layer.
  void Visit(ArgumentVisitor& visitor);
  // Lists only the arguments that belong to the layer's cell.
  void VisitCell(ArgumentVisitor& visitor);
  int gates() const;
  int states() const { return kind == CellKind::kLSTM ? 2 : 1; }
};

// Contains the arguments of a call, as indices of the call's inputs.
struct RecurrentInputs {
  int sequences = 0;
  std::vector<int> initial_state;  // empty: zeros
  int mask = kNoInput;             // bool [steps]; by default, the mask of the sequences
  // Whether the file lists the initial states after the sequences, like tf.keras 2. If initial
  // states are passed in any other way, the mask of the sequences is not used, as in Keras 3.
  bool listed = false;

  void Visit(CallVisitor& visitor);
  graph::Output MaskOf(const LayerCall& call) const;
  // Returns the mask that the outputs of all steps have. As in Keras, it is that of the sequences,
  // even if the layer does not use it.
  graph::Output SequencesMaskOf(const LayerCall& call) const;
};

// Returns InvalidArgument unless the type is the expected one.
Status ExpectType(std::string_view what, const TensorType& type, const TensorType& expected);

// Return the output types, the variables ("lstm_cell/kernel", …), and the outputs, respectively.
// `in` and `call` contain the inputs that `inputs` refers to.
StatusOr<std::vector<TensorType>> RecurrentTypes(const RecurrentArguments& arguments,
                                                 const RecurrentInputs& inputs,
                                                 std::span<const TensorType> in);
std::vector<VariableSpec> RecurrentVariables(const RecurrentArguments& arguments, int64_t features);
// If `flip` is set, the outputs of all steps are in reverse order.
std::vector<graph::Output> RecurrentOutputs(const RecurrentArguments& arguments,
                                            const RecurrentInputs& inputs, LayerCall& call,
                                            bool flip);

// Computes a recurrent layer. A masked step preserves the state, and repeats the output of the
// previous step (0 if there is none).
//
// Variables: kernel [features,gates·units], recurrent_kernel [units,gates·units] and, if use_bias
// is set, bias [gates·units], or [2,gates·units] for GRU with reset_after. Gates, in order, with
// z = x·kernel + h·recurrent_kernel + bias:
//   SimpleRNN  h' = activation(z)
//   LSTM       i, f, g, o: c' = σ(f)·c + σ(i)·activation(g), h' = σ(o)·activation(c')
//   GRU        z, r, h: h' = σ(z)·h + (1 - σ(z))·activation(…), where σ(r) scales h or, with
//              reset_after, h·recurrent_kernel plus its bias
template <CellKind kKind>
struct Recurrent {
  static constexpr std::string_view kClass = kKind == CellKind::kSimpleRNN ? "SimpleRNN"
                                             : kKind == CellKind::kLSTM    ? "LSTM"
                                                                           : "GRU";
  RecurrentArguments arguments = {.kind = kKind};
  RecurrentInputs inputs = {};

  void Arguments(ArgumentVisitor& visitor) { arguments.Visit(visitor); }
  void CallArguments(CallVisitor& visitor) { inputs.Visit(visitor); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const {
    return RecurrentTypes(arguments, inputs, in);
  }
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const {
    return RecurrentVariables(arguments, in[static_cast<size_t>(inputs.sequences)].shape.dim(-1));
  }
  std::vector<graph::Output> Apply(LayerCall& call) const { return Outputs(call, false); }
  // Like Apply. If `flip` is set, the outputs of all steps are in reverse order.
  std::vector<graph::Output> Outputs(LayerCall& call, bool flip) const {
    return RecurrentOutputs(arguments, inputs, call, flip);
  }
};

using SimpleRNN = Recurrent<CellKind::kSimpleRNN>;
using LSTM = Recurrent<CellKind::kLSTM>;
using GRU = Recurrent<CellKind::kGRU>;

}  // namespace tfjob::model::layers
