#include "runtime/model/keras_call.h"

#include <utility>

#include "runtime/model/call_reader.h"
#include "runtime/model/keras_layer.h"

namespace tfjob::model {

StatusOr<KerasCall> ReadKerasCall(const Json& layer, const Json& node) {
  LayerNames names;
  ASSIGN_OR_RETURN(const Layer read, ReadLayer(JsonField(layer), names));
  ASSIGN_OR_RETURN(CallForm call, ReadCall(JsonField(node), read));
  KerasCall made{.layer = call.config ? *call.config : read.config, .inputs = {}};
  for (History& input : call.inputs) made.inputs.push_back(std::move(input.layer));
  return made;
}

}  // namespace tfjob::model
