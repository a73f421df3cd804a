// Defines layers that wrap other layers.
#pragma once

#include <memory>

#include "runtime/model/layers/recurrent.h"
#include "runtime/model/model.h"

namespace tfjob::model::layers {

// Applies a layer with one input and one output to each step of sequences [steps,…].
//
// Treats the steps as examples of one larger batch, with two exceptions, in which a loop applies
// the layer to the steps in sequence. As in Keras, a BatchNormalization has separate statistics per
// step in training, and each step updates the moving statistics that the previous step left. If a
// nested model has activity regularizers, the penalties of all steps are added up.
struct TimeDistributed {
  static constexpr std::string_view kClass = "TimeDistributed";
  static constexpr bool kSupportsMasking = true;
  static constexpr bool kKeepsTypes = true;
  std::shared_ptr<const Layer> layer;
  // The arguments of a call: the sequences and, optionally, the mask.
  int input = 0, mask = kNoInput;

  void Arguments(ArgumentVisitor& visitor) { visitor.Wrapped("layer", layer, /*required=*/true); }
  void CallArguments(CallVisitor& visitor) {
    visitor.Input("inputs", input, /*required=*/true);
    visitor.Unsupported("training");
    visitor.Input("mask", mask);
  }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

// Specifies how a Bidirectional layer combines its outputs.
enum class BidirectionalMerge { kConcat, kSum, kMul, kAve, kNone };

// Runs two recurrent layers, such as LSTM, ConvLSTM2D or RNN, over the sequences, one forwards and
// one backwards. They may be of different classes. If the backward layer returns the outputs of all
// steps, they are put into the order of the steps. With kNone, returns both outputs. The outputs
// are followed by the states of the forward layer, and then by those of the backward layer. Initial
// states have the same order.
struct Bidirectional {
  static constexpr std::string_view kClass = "Bidirectional";
  std::shared_ptr<const Layer> layer;
  // If null, the backward layer is a copy of `layer` that runs backwards.
  std::shared_ptr<const Layer> backward_layer;
  BidirectionalMerge merge_mode = BidirectionalMerge::kConcat;
  RecurrentInputs inputs = {};

  void Arguments(ArgumentVisitor& visitor);
  void CallArguments(CallVisitor& visitor) { inputs.Visit(visitor); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

}  // namespace tfjob::model::layers
