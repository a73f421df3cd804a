// Represents Keras' dtype policies (keras.io/api/mixed_precision). In Keras, a policy specifies the
// type of a layer's variables and the type in which the layer computes. Here, variables are float32
// under every policy.
#pragma once

#include <optional>
#include <string_view>

#include "runtime/tensor/dtype.h"

namespace tfjob::model {

enum class DTypePolicy { kFloat32, kMixedBFloat16, kMixedFloat16 };

std::string_view Name(DTypePolicy policy);  // Keras' name: "mixed_bfloat16"
std::optional<DTypePolicy> ParseDTypePolicy(std::string_view name);
// Returns the type of the layer's inputs, outputs and arithmetic: float32, bfloat16 or float16.
DType ComputeType(DTypePolicy policy);

}  // namespace tfjob::model
