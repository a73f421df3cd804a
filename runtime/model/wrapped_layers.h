// Changes the layers that a layer contains: those that a wrapper applies, the cells of an RNN, and
// the layers of a nested model.
#pragma once

#include "runtime/model/model.h"

namespace tfjob::model {

// Sets the policy of the layer, and of the layers in it, if it has none. Returns whether a policy
// was set.
bool SetPolicy(Layer& layer, DTypePolicy policy);
// Returns a copy of a wrapper's config in which the layers inside have the policy, unless they have
// one.
LayerConfig WithPolicy(const LayerConfig& config, DTypePolicy policy);
// Returns false for inputs and functions, which compute in the types that they are given.
bool HasPolicy(const Layer& layer);

// Gives the policy of a wrapper or an RNN to the layers in it. Returns InvalidArgument if one of
// them has another policy: the wrapper casts what they compute.
Status SharePolicy(Layer& layer);

}  // namespace tfjob::model
