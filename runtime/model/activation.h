// Declares the activation functions, with their Keras names.
#pragma once

#include "runtime/model/layers.h"

namespace tfjob::model {

std::string_view Name(ActivationKind kind);
// Reads the argument, which is a name or Keras 3's {class_name: function, config: name}. Leaves
// `into` unchanged if the argument is absent or null.
Status ReadActivation(Arguments& arguments, std::string_view argument, ActivationKind& into);
graph::Output Activate(graph::Builder& b, ActivationKind kind, graph::Output x);

}  // namespace tfjob::model
