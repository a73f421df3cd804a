// Declares the parameters of the kernels that update variables. The rules in parameters.h apply.
#pragma once

#include <cstdint>

#include "runtime/kernels/cuda/float_type.h"

namespace tfjob::kernels::cuda {

// ApplyAdam and ApplySgd update many variables in one launch; each block updates kUpdateChunk
// elements of one variable. If there are more than kUpdateTensors variables, further launches are
// needed.
inline constexpr int kUpdateTensors = 32;
inline constexpr int kUpdateThreads = 256;
inline constexpr int kUpdateChunk = kUpdateThreads * 4 * 4;

// A variable with its gradient and slots, each of which is contiguous. The update is fastest if all
// addresses are multiples of 16.
struct UpdateTensor {
  float* variable;
  const void* gradient;
  float* first;   // Adam's m, or SGD's momentum; null: none
  float* second;  // Adam's v; null: none
  int64_t count;  // elements
  FloatType gradient_type;
};

struct UpdateTensors {
  UpdateTensor tensor[kUpdateTensors];
  int32_t first_block[kUpdateTensors + 1];  // per tensor, followed by the number of blocks
  int32_t tensors;
};

// LearningRate computes the learning rate of a schedule (optimizer/schedule.h) at a step.
enum class RateDecay : int32_t {  // in the order of optimizer::Decay
  kNone,
  kExponential,
  kInverseTime,
  kPolynomial,
  kCosine,
  kCosineRestarts,
  kPiecewiseConstant
};
inline constexpr int kRatePieces = 64;
struct LearningRateParameter {
  const int64_t* step;
  float* rate;
  RateDecay decay;
  int32_t staircase, cycle, pieces;
  double initial, decay_steps, decay_rate, end_learning_rate, power, alpha, t_mul, m_mul;
  double warmup_target, warmup_steps;
  double boundaries[kRatePieces], values[kRatePieces + 1];
};

// UpdateNumbers computes the numbers that depend on the step, for GeneralUpdate.
enum class UpdateKind : int32_t {  // in the order of optimizer::Kind
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
struct StepNumbers {
  float rate;           // includes the bias corrections of Adam and Adamax
  float gradient_rate;  // Nadam: factor of the gradient
  float correction;     // Nadam: 1 / (1 - beta_2^t)
  float l2;             // Ftrl: factor of w
  float decay;          // weight decay: w -= decay w
  float keep_average;
  int32_t overwrites;  // 1: the variable becomes its average
  int32_t only_adds;   // 1: the gradient is only added to the accumulator
};
struct UpdateNumbersParameter {
  LearningRateParameter schedule;
  StepNumbers* numbers;
  UpdateKind kind;
  int32_t only_adds;  // 1: in every step
  double beta_1, beta_2, beta, l2, weight_decay, ema_momentum;
  int64_t every;                // steps per update
  int64_t overwrite_frequency;  // 0: never
};

// The learning rate of an update.
struct UpdateRate {
  const float* scheduled;  // in device memory; null: use `constant`
  float constant;
};

// The coefficients of Keras 3's Adam and AdamW (optimizer/optimizer.h). `step` is in device memory,
// so that each replay of a captured launch reads the current step. The host computes the
// coefficients in double precision: if beta is close to 1, 1 - beta would have few correct digits
// in single precision.
struct AdamCoefficients {
  const int64_t* step;     // the number of updates before this one
  const int64_t* refusal;  // if its first number is not 0, the kernel does nothing; may be null
  UpdateRate rate;
  float epsilon;
  float take_1, take_2;          // 1 - beta_1, 1 - beta_2
  float log_beta_1, log_beta_2;  // natural logarithms
  float weight_decay;
};
struct AdamParameter {
  UpdateTensors update;
  AdamCoefficients adam;
};

// The coefficients of Keras 3's SGD. If there is momentum, every tensor must have a `first`.
struct SgdCoefficients {
  const int64_t* refusal;  // as in AdamCoefficients
  UpdateRate rate;
  float momentum, weight_decay;
  int32_t nesterov;
};
struct SgdParameter {
  UpdateTensors update;
  SgdCoefficients sgd;
};

// ApplyAdamRows and ApplySgdRows apply a gradient that is given by rows (optimizer/apply_kernel.h).
// If `index` is set, they update every row of the variable; otherwise, they update only the rows in
// `rows`.
struct RowUpdate {
  float* variable;
  float* first;
  float* second;
  const void* values;
  const int64_t* rows;   // per row of `values`, the index of the variable's row; -1: none
  const int32_t* index;  // per row of the variable, the index of the row of `values`; -1: none
  int64_t variable_stride, first_stride, second_stride, values_stride;
  int64_t variable_rows;
  uint32_t count, cols;  // elements to visit, and per row
  FloatType values_type;
};
struct AdamRowsParameter {
  RowUpdate update;
  AdamCoefficients adam;
};
struct SgdRowsParameter {
  RowUpdate update;
  SgdCoefficients sgd;
};

// GeneralUpdate implements all kinds of optimizers, with all options except constraints. It is
// slower than the specialised kernels above. It chooses the rows of the variable like
// ApplyAdamRows. If both `rows` and `index` are null, each row is updated with the row of `values`
// that has the same index.
inline constexpr int kUpdateSlots = 5;
struct GeneralUpdateParameter {
  float* variable;
  float* slots[kUpdateSlots];
  int64_t variable_stride, slot_strides[kUpdateSlots];
  const void* values;
  const int64_t* rows;
  const int32_t* index;
  const int64_t* refusal;  // as in AdamCoefficients
  const StepNumbers* numbers;
  int64_t values_stride, variable_rows;
  uint32_t count, cols;  // elements to visit, and per row
  FloatType values_type;
  UpdateKind kind;
  int32_t nesterov, amsgrad, centered, root;  // root: Ftrl's power is 1/2
  int32_t average, accumulator;               // the indices of slots; -1: none
  int32_t adds;                               // 1: the gradient is added to the accumulator
  float scale;                                // factor of the gradient, or of the accumulator
  float momentum, keep_1, take_1, keep_2, take_2, epsilon, l1, shrink, power;
};

// IndexRows inverts `rows`: it sets index[rows[i]] to i, unless rows[i] is out of range.
inline constexpr int kIndexThreads = 256;
struct IndexRowsParameter {
  const int64_t* rows;
  int32_t* index;
  int64_t index_count;
  uint32_t count;
};

}  // namespace tfjob::kernels::cuda
