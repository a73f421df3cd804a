// Changes the layers that a layer contains: the wrapped layers of a wrapper, the cells of an RNN,
// and the layers of a nested model.
#pragma once

#include "runtime/model/model.h"

namespace tfjob::model {

// If the layer has no policy, sets its policy and the policies of the layers inside it. Returns
// whether a policy was set.
bool SetPolicy(Layer& layer, DTypePolicy policy);
// Returns a copy of a wrapper's config in which all layers inside that have no policy get this
// policy.
LayerConfig WithPolicy(const LayerConfig& config, DTypePolicy policy);
// Returns whether the layer can have a policy. Inputs and functions cannot: they compute in the
// types of their inputs.
bool HasPolicy(const Layer& layer);

// Applies the policy of a wrapper or an RNN to the layers inside it. Returns InvalidArgument if one
// of these layers has a different policy, because the wrapper casts their results.
Status SharePolicy(Layer& layer);

}  // namespace tfjob::model
