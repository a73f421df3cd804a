// Represents an optimizer as a value, and implements its arithmetic. The graph op ApplyOptimizer
// and the parameter servers both use this implementation.
//
// The arithmetic is Keras 3's (keras/src/optimizers). g is the gradient, w the variable, lr the
// learning rate of the step, and t = step + 1:
//
//   SGD      momentum = 0: w -= lr g
//            else m = momentum m - lr g; w += m (with nesterov: w += momentum m - lr g)
//   Adagrad  a += g²; w -= lr g / sqrt(a + epsilon)
//   Adam     m += (g - m)(1 - beta_1); v += (g² - v)(1 - beta_2)
//            w -= m lr sqrt(1 - beta_2^t) / (1 - beta_1^t) / (sqrt(v) + epsilon)
//   RMSprop  v = rho v + (1 - rho) g²
//            d = v + epsilon; if centered, a = rho a + (1 - rho) g and d = v - a² + epsilon
//            u = lr g / sqrt(d); momentum = 0: w -= u, else m = momentum m + u; w -= m
//
// TensorFlow 1's optimizers use the same formulas with other default values: AdagradOptimizer has
// epsilon 0, AdamOptimizer epsilon 1e-8.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/optimizer/schedule.h"
#include "runtime/tensor/attributes.h"

namespace tfjob::kernels {
class Stream;
}  // namespace tfjob::kernels

namespace tfjob::optimizer {

enum class Kind { kSgd, kAdagrad, kAdam, kRmsprop };

// Parses Keras' class names, ignoring case: "sgd", "adagrad", "adam", "rmsprop". For any other
// name, returns InvalidArgument with a message that lists the choices.
StatusOr<Kind> ParseKind(std::string_view name);
std::string_view Name(Kind kind);  // "SGD", "Adagrad", "Adam", "RMSprop"

// Each kind uses only the learning rate, the schedule and the hyper-parameters that are marked with
// its name.
struct Optimizer {
  Kind kind = Kind::kSgd;
  double learning_rate = 0.01;  // the initial rate, if there is a schedule
  Schedule schedule;
  double momentum = 0;                     // SGD, RMSprop
  bool nesterov = false;                   // SGD
  double initial_accumulator_value = 0.1;  // Adagrad
  double beta_1 = 0.9;                     // Adam
  double beta_2 = 0.999;                   // Adam
  double rho = 0.9;                        // RMSprop
  bool centered = false;                   // RMSprop
  double epsilon = 1e-7;                   // Adagrad, Adam, RMSprop

  // Returns Keras 3's defaults: learning rate 0.01 for SGD, 0.001 for the others.
  static Optimizer Default(Kind kind);

  bool operator==(const Optimizer&) const = default;
};

// Returns InvalidArgument if a hyper-parameter that the kind uses is invalid. The message gives its
// Keras name, its value and what is allowed.
Status Validate(const Optimizer& optimizer);

// Describes an additional tensor, of the variable's shape, that the optimizer keeps for
// each variable.
struct Slot {
  std::string name;  // Keras 3's: "momentum", "velocity", "accumulator", "average_gradient"
  // The slot of variable w is saved as "<w>/<suffix>". The suffix is TensorFlow 1's if the contents
  // mean the same (Adagrad; Adam, Adam_1; RMSProp, RMSProp_1, RMSProp_2). Only SGD's slot has Keras
  // 3's suffix, "momentum". Its contents include the factor -lr, unlike those of TensorFlow's
  // Momentum.
  std::string suffix;
  double initial_value = 0;

  bool operator==(const Slot&) const = default;
};

// Returns the slots in the order in which Apply takes them. Their number and names depend only on
// the kind, on `centered` and on whether `momentum` is 0.
std::vector<Slot> Slots(const Optimizer& optimizer);
inline constexpr int kMaxSlots = 3;

// Updates the variable and its slots once. Makes a single pass over memory, divided among the
// stream's threads. `step` is the number of updates before this one (Keras' `iterations`). `slots`
// are in the order of Slots(optimizer). Every span must have as many elements as the variable. The
// gradient is first multiplied by `gradient_scale`, for example by 1 / n if `gradient` is the sum
// of n gradients.
void Apply(const Optimizer& optimizer, int64_t step, std::span<float> variable,
           std::span<const float> gradient, std::span<const std::span<float>> slots,
           kernels::Stream& stream, float gradient_scale = 1);
void Apply(const Optimizer& optimizer, int64_t step, std::span<double> variable,
           std::span<const double> gradient, std::span<const std::span<double>> slots,
           kernels::Stream& stream, double gradient_scale = 1);

// Convert an optimizer to and from the attributes of the op ApplyOptimizer. FromAttributes returns
// InvalidArgument if the attributes do not describe a valid optimizer (see Validate).
Attributes ToAttributes(const Optimizer& optimizer);
StatusOr<Optimizer> FromAttributes(const Attributes& attributes);

}  // namespace tfjob::optimizer
