// Declares the activation functions, with their Keras names.
#pragma once

#include <string_view>

#include "runtime/graph/builder.h"
#include "runtime/model/arguments.h"

namespace tfjob::model {

enum class ActivationKind { kLinear, kRelu, kSigmoid, kTanh, kSoftmax };

std::string_view Name(ActivationKind kind);
// Reads the argument, which is a name or Keras 3's {class_name: function, config: name}. Leaves
// `into` unchanged if the argument is absent or null.
Status ReadActivation(Arguments& arguments, std::string_view argument, ActivationKind& into);
graph::Output Activate(graph::Builder& b, ActivationKind kind, graph::Output x);

}  // namespace tfjob::model
