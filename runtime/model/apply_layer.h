// Applies layers according to their dtype policies. As in Keras, the float inputs and the variables
// of a layer are cast to the policy's compute type, and the layer computes and returns its outputs
// in this type. A layer whose class sets kComputesInFloat32 computes in float32 instead, and only
// its outputs are cast to the compute type. Integers are cast to the type in which the layer
// computes if its class rejects them. Inputs of type float64 are not cast here: a model casts them
// when it calls a layer (WithoutDouble).
#pragma once

#include <span>
#include <vector>

#include "runtime/model/model.h"

namespace tfjob::model {

// Like the functions of LayerConfig, but follow the dtype policy of `layer`. `config` is the
// layer's config with the arguments of one call (ConfigOf).
StatusOr<std::vector<TensorType>> TypesAfterLayer(const Layer& layer, const LayerConfig& config,
                                                  std::span<const TensorType> in);
std::vector<VariableSpec> VariablesOfConfig(const LayerConfig& config,
                                            std::span<const TensorType> in);
std::vector<graph::Output> ApplyLayer(const Layer& layer, const LayerConfig& config,
                                      LayerCall& call);

// Returns the type of a layer's input for a value of this type. As in Keras, the calls of a model
// cast float64 to float32, except for inputs, functions and nested models, which keep the types of
// values.
TensorType WithoutDouble(const LayerConfig& config, TensorType type);

// Sets the policy of all layers that have none, including layers inside other layers and nested
// models. Returns whether there was any such layer. Skips inputs and functions, which have no
// policy.
bool SetPolicy(Model& model, DTypePolicy policy);
// Returns whether any layer has this policy.
bool HasPolicy(const Model& model, DTypePolicy policy);

// Returns the type with float32 in place of a half type. Losses, metrics and users get the outputs
// of a model as float32.
TensorType Widened(TensorType type);
graph::Output Widened(graph::Builder& b, graph::Output x);

}  // namespace tfjob::model
