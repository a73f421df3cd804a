// The layers, each with the arguments that Keras gives it (keras.io/api/layers) as far as they are supported. What each
// class does is in layer_class.h's table.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/model/initializer.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model {

enum class ActivationKind { kLinear, kRelu, kSigmoid, kTanh, kSoftmax };

struct InputLayer {
  Shape shape;  // of one example
};
// y = activation(x·kernel + bias) over the last axis. Variables kernel [in, units], bias [units].
struct Dense {
  int64_t units = 0;
  ActivationKind activation = ActivationKind::kLinear;
  bool use_bias = true;
  Initializer kernel_initializer = Initializer::GlorotUniform();
  Initializer bias_initializer = Initializer::Zeros();
};
struct Flatten {};
struct Reshape {
  std::vector<int64_t> target_shape;  // of one example; one of it may be -1
};
struct Activation {
  ActivationKind activation = ActivationKind::kLinear;
};
struct ReLU {};
struct Softmax {};  // over the last axis
// Only when training: each element is 0 with probability `rate`, else divided by 1 - rate.
struct Dropout {
  double rate = 0;
  std::optional<int64_t> seed;  // kept for the file; randomness follows the run's seed
};

using LayerConfig =
    std::variant<InputLayer, Dense, Flatten, Reshape, Activation, ReLU, Softmax, Dropout>;

}  // namespace tfjob::model
