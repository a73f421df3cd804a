// Converts tensors to JSON, {"dtype": …, "shape": […], "values": […]}, and back.
#pragma once

#include "runtime/base/json.h"
#include "runtime/tensor/tensor.h"

namespace tfjob {

Json ToJson(const Tensor& tensor);
Tensor ToTensor(const Json& json);

}  // namespace tfjob
