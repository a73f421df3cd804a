// Defines recurrent layers that use convolutions in place of matrix products. They operate on
// sequences of rows [steps,length,channels] (kRank = 1), of images [steps,height,width,channels]
// (kRank = 2) or of volumes [steps,depth,height,width,channels] (kRank = 3).
#pragma once

#include "runtime/model/layer/activation.h"
#include "runtime/model/layers/padding.h"
#include "runtime/model/layers/recurrent.h"

namespace tfjob::model::layers {

// Computes an LSTM (recurrent.h) in which z = kernel ∗ x + recurrent_kernel ∗ h + bias. The
// convolution of the state h preserves the size of h. The states have the same shape as the
// convolution of x. Variables: kernel [size…,channels,4·filters], recurrent_kernel
// [size…,filters,4·filters] and, if use_bias is set, bias [4·filters].
template <int kRank>
struct ConvLSTM {
  static constexpr std::string_view kClass = kRank == 1   ? "ConvLSTM1D"
                                             : kRank == 2 ? "ConvLSTM2D"
                                                          : "ConvLSTM3D";
  int64_t filters = 0;
  WindowArguments window = WindowArguments::Ones(kRank);
  ActivationKind activation = ActivationKind::kTanh;
  ActivationKind recurrent_activation = ActivationKind::kSigmoid;
  bool use_bias = true;
  bool unit_forget_bias = true;  // the forget gate's bias starts at 1
  Initializer kernel_initializer = Initializer::GlorotUniform();
  Initializer recurrent_initializer = Initializer::Orthogonal();
  Initializer bias_initializer = Initializer::Zeros();
  WeightRules kernel_rules = {}, recurrent_rules = {}, bias_rules = {};
  // The fractions of the input elements and of the state elements to drop. Each gate has its own
  // dropout mask, which it uses in every step.
  double dropout = 0, recurrent_dropout = 0;
  std::optional<int64_t> seed = {};  // stored but not used: dropout uses the run's seed
  bool return_sequences = false;     // returns the outputs of all steps, not only of the last
  bool return_state = false;         // also returns the two states after the last step
  bool go_backwards = false;         // processes and returns the steps from last to first
  // Whether the output of a masked step is 0. If not, it is the output of the previous step.
  bool zero_output_for_mask = false;
  RecurrentInputs inputs = {};

  void Arguments(ArgumentVisitor& visitor);
  void CallArguments(CallVisitor& visitor) { inputs.Visit(visitor); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const { return Outputs(call, false); }
  // Like Apply. If `flip` is set, the outputs of all steps are in reverse order.
  std::vector<graph::Output> Outputs(LayerCall& call, bool flip) const;
};

using ConvLSTM1D = ConvLSTM<1>;
using ConvLSTM2D = ConvLSTM<2>;
using ConvLSTM3D = ConvLSTM<3>;

}  // namespace tfjob::model::layers
