// Represents an optimizer as a value, and implements its arithmetic. The op ApplyOptimizer and the
// parameter servers both use this implementation.
//
// The arithmetic is that of Keras 3 (keras/src/optimizers). Here, g is the gradient, w is the
// variable, lr is the learning rate of the step, and t = step + 1:
//
//   SGD       momentum = 0: w -= lr g
//             else m = momentum m - lr g; w += m (with nesterov: w += momentum m - lr g)
//   Adagrad   a += g²; w -= lr g / sqrt(a + epsilon)
//   Adam      m += (g - m)(1 - beta_1); v += (g² - v)(1 - beta_2)
//             w -= m lr sqrt(1 - beta_2^t) / (1 - beta_1^t) / (sqrt(v) + epsilon)
//             with amsgrad, h = max(h, v) takes the place of v in the last line
//   AdamW     Adam, with a different default for weight_decay
//   Nadam     m and v as Adam; u_t = beta_1 (1 - 0.96^t / 2); p_t = u_1 u_2 … u_t
//             n = u_{t+1} m / (1 - p_{t+1}) + (1 - u_t) g / (1 - p_t)
//             w -= lr n / (sqrt(v / (1 - beta_2^t)) + epsilon)
//   Adamax    m as Adam; u = max(beta_2 u, |g|); w -= lr m / ((1 - beta_1^t)(u + epsilon))
//   RMSprop   v = rho v + (1 - rho) g²
//             d = v + epsilon; if centered, a = rho a + (1 - rho) g and d = v - a² + epsilon
//             u = lr g / sqrt(d); momentum = 0: w -= u, else m = momentum m + u; w -= m
//   Adadelta  a = rho a + (1 - rho) g²; d = -sqrt(e + epsilon) g / sqrt(a + epsilon)
//             e = rho e + (1 - rho) d²; w += lr d
//   Ftrl      n = a + g², q = -learning_rate_power, l2 = l2_regularization_strength + beta / (2 lr)
//             z += g + 2 l2_shrinkage_regularization_strength w - (n^q - a^q) w / lr; a = n
//             w = (clip(z, -l1, l1) - z) / (n^q / lr + 2 l2), l1 = l1_regularization_strength
//   Lion      w -= lr sign(beta_1 m + (1 - beta_1) g); m = beta_2 m + (1 - beta_2) g
//
// Every kind of optimizer has these options, which take effect in this order:
//
//   gradient_accumulation_steps  k: each gradient is added to a slot. Only every k-th step updates
//                                w, with the mean of k gradients. Bias corrections then count
//                                updates: t = ⌊step / k⌋ + 1. Schedules still count steps
//   weight_decay                 w -= lr weight_decay w, before the update
//   use_ema                      average = ema_momentum average + (1 - ema_momentum) w, after every
//                                step; the average equals w while t = 1
//   ema_overwrite_frequency      f: w = average, in every step in which f divides t
//
// The optimizers of TensorFlow 1 use the same formulas with different defaults: epsilon is 0 in
// AdagradOptimizer, and 1e-8 in AdamOptimizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/optimizer/schedule.h"
#include "runtime/tensor/attributes.h"

namespace tfjob::kernels {
class Stream;
}  // namespace tfjob::kernels

namespace tfjob::optimizer {

enum class Kind {
  kSgd,
  kAdagrad,
  kAdam,
  kRmsprop,
  kAdamW,
  kNadam,
  kAdamax,
  kAdadelta,
  kFtrl,
  kLion
};
inline constexpr int kKindCount = 10;

// Parses the name of a Keras class, ignoring case: "sgd", "adagrad", "adam", "rmsprop", … For an
// unknown name, returns InvalidArgument with a message that suggests or lists names.
StatusOr<Kind> ParseKind(std::string_view name);
std::string_view Name(Kind kind);  // "SGD", "Adagrad", "Adam", "RMSprop", …

// Describes an optimizer. Each kind uses only the learning rate, the schedule, the options that
// every kind has, and the hyper-parameters that are marked with its name.
struct Optimizer {
  Kind kind = Kind::kSgd;
  double learning_rate = 0.01;  // the initial rate, if there is a schedule
  Schedule schedule;
  double momentum = 0;                     // SGD, RMSprop
  bool nesterov = false;                   // SGD
  double initial_accumulator_value = 0.1;  // Adagrad, Ftrl
  double beta_1 = 0.9;                     // Adam, AdamW, Nadam, Adamax, Lion
  double beta_2 = 0.999;                   // Adam, AdamW, Nadam, Adamax, Lion
  double rho = 0.9;                        // RMSprop, Adadelta
  bool centered = false;                   // RMSprop
  bool amsgrad = false;                    // Adam, AdamW
  double epsilon = 1e-7;                   // all except SGD, Ftrl and Lion
  // Hyper-parameters of Ftrl.
  double learning_rate_power = -0.5;
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  double l2_shrinkage_regularization_strength = 0;
  double beta = 0;

  double weight_decay = 0;  // 0: none
  // Excludes variables from weight decay. A variable is excluded if any of these regular
  // expressions (RE2 syntax) matches a substring of its name ("dense_1/bias"), or of the last
  // component of its name ("bias", the name in Keras).
  std::vector<std::string> exclude_from_weight_decay;
  bool use_ema = false;
  double ema_momentum = 0.99;
  int64_t ema_overwrite_frequency = 0;      // 0: never
  int64_t gradient_accumulation_steps = 0;  // 0: every step updates the variables
  // Whether rows without a gradient keep their values and slots. If false, their gradient is zero,
  // as in Keras, so momentum still changes these rows. Cannot be combined with use_ema or
  // gradient_accumulation_steps.
  bool lazy = false;

  // Returns an optimizer with the defaults of Keras 3.
  static Optimizer Default(Kind kind);

  bool operator==(const Optimizer&) const = default;
};

// Returns the product u_1 u_2 … u_n of Nadam, where n is `updates`.
double NadamProduct(double beta_1, int64_t updates);

// Returns InvalidArgument if a hyperparameter that the kind uses is invalid, or if a regular
// expression is invalid. The message contains the name in Keras, the value and the allowed values.
Status Validate(const Optimizer& optimizer);

// Returns the optimizer to use for one variable. It has no exclude_from_weight_decay; instead, it
// has no weight decay if the variable is excluded.
Optimizer ForVariable(const Optimizer& optimizer, std::string_view variable);

// Describes an additional tensor, with the shape of the variable, that the optimizer maintains for
// each variable.
struct Slot {
  std::string name;  // the name in Keras 3: "momentum", "velocity", "accumulator",
                     // "average_gradient", …
  // The slot of variable w is saved as "<w>/<suffix>". If the contents have the same meaning as in
  // TensorFlow 1, the suffix is that of TensorFlow 1 (Adagrad; Adam, Adam_1; RMSProp, RMSProp_1,
  // RMSProp_2; Adadelta, Adadelta_1; Ftrl, Ftrl_1). All other slots have the suffixes of Keras 3.
  // This includes the "momentum" of SGD, because its contents include the factor -lr, unlike the
  // Momentum slot of TensorFlow.
  std::string suffix;
  double initial_value = 0;
  bool starts_as_variable = false;  // the initial value is that of the variable

  bool operator==(const Slot&) const = default;
};

// Returns the slots in the order that Apply expects: the slots of the kind, then the average
// (use_ema), then the accumulated gradient (gradient_accumulation_steps). Their number and names
// depend only on the kind, on `centered` and `amsgrad`, on whether `momentum` is 0, and on the
// options that every kind has.
std::vector<Slot> Slots(const Optimizer& optimizer);
inline constexpr int kMaxSlots = 5;

// Returns the number of slots, without allocating memory.
int SlotCount(const Optimizer& optimizer);
// Returns the index of the average (use_ema) among the slots, or -1 if there is no average.
int AverageSlot(const Optimizer& optimizer);

// Updates the variable and its slots once, in a single pass over memory. The stream's threads share
// the work. `step` is the number of steps before this one (Keras' `iterations`, unless
// gradient_accumulation_steps is used). `slots` are in the order of Slots(optimizer). Every span
// must have as many elements as the variable. First multiplies the gradient by `gradient_scale`,
// for example by 1 / n if `gradient` is the sum of n gradients. `optimizer` should be the result of
// ForVariable, because exclude_from_weight_decay is ignored here.
void Apply(const Optimizer& optimizer, int64_t step, std::span<float> variable,
           std::span<const float> gradient, std::span<const std::span<float>> slots,
           kernels::Stream& stream, float gradient_scale = 1);
void Apply(const Optimizer& optimizer, int64_t step, std::span<double> variable,
           std::span<const double> gradient, std::span<const std::span<double>> slots,
           kernels::Stream& stream, double gradient_scale = 1);

// Returns whether rows without a gradient keep their values and slots, so that ApplyRows need not
// visit these rows. This is the case if the optimizer is lazy, or if a gradient of zero has no
// effect.
bool KeepsRows(const Optimizer& optimizer);

// Contains the rows of a gradient that may be nonzero. values[i] is the row with index indices[i].
// The variable is a matrix, or consecutive rows of a matrix; its first row has index `first_index`.
template <typename T>
struct GradientRows {
  std::span<const int64_t> indices;  // ascending and distinct indices of the variable's rows
  std::span<const T> values;         // dense; one row per index
  int64_t first_index = 0;
  int64_t cols = 0;
};

// Like Apply, but for a gradient that is given by rows. Visits only the rows that change.
void ApplyRows(const Optimizer& optimizer, int64_t step, std::span<float> variable,
               const GradientRows<float>& gradient, std::span<const std::span<float>> slots,
               kernels::Stream& stream, float gradient_scale = 1);
void ApplyRows(const Optimizer& optimizer, int64_t step, std::span<double> variable,
               const GradientRows<double>& gradient, std::span<const std::span<double>> slots,
               kernels::Stream& stream, double gradient_scale = 1);

// Convert an optimizer for one variable (see ForVariable) to and from the attributes of the op
// ApplyOptimizer. FromAttributes returns InvalidArgument if the attributes do not describe a valid
// optimizer (see Validate).
Attributes ToAttributes(const Optimizer& optimizer);
StatusOr<Optimizer> FromAttributes(const Attributes& attributes);

// Convert an optimizer to and from JSON. ParseOptimizer returns InvalidArgument if the JSON does
// not describe a valid optimizer.
Json ToJson(const Optimizer& optimizer);
StatusOr<Optimizer> ParseOptimizer(const JsonField& json);

}  // namespace tfjob::optimizer
