// Applies layers as their dtype policies demand. As in Keras, the float inputs and the variables of
// a layer are cast to the policy's compute type, in which the layer computes and returns its
// outputs. A layer whose class sets kComputesInFloat32 computes in float32 instead, and only its
// outputs are cast to the compute type. Inputs of float64 stay as they are.
#pragma once

#include <span>
#include <vector>

#include "runtime/model/model.h"

namespace tfjob::model {

// `config` is the layer's config with the arguments of one call (ConfigOf). The functions return
// what the functions of LayerConfig return.
StatusOr<std::vector<TensorType>> TypesAfterLayer(const Layer& layer, const LayerConfig& config,
                                                  std::span<const TensorType> in);
std::vector<VariableSpec> VariablesOfConfig(const LayerConfig& config,
                                            std::span<const TensorType> in);
std::vector<graph::Output> ApplyLayer(const Layer& layer, const LayerConfig& config,
                                      LayerCall& call);

// Sets the policy of all layers that have none, including those in other layers and models. Returns
// whether there was such a layer; inputs and functions have no policy.
bool SetPolicy(Model& model, DTypePolicy policy);
// Returns whether any layer has this policy.
bool HasPolicy(const Model& model, DTypePolicy policy);

// Returns the type with float32 in place of a half type: losses, metrics and the user see the
// outputs of a model in float32.
TensorType Widened(TensorType type);
graph::Output Widened(graph::Builder& b, graph::Output x);

}  // namespace tfjob::model
