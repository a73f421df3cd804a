// Defines how the learning rate changes with the step. The arithmetic is that of Keras 3
// (keras/src/optimizers/schedules). Here, s is the step, counted from 0, n is decay_steps, and r is
// the initial rate:
//
//   exponential   r decay_rate^(s / n); with staircase, s / n is rounded down
//   inverse time  r / (1 + decay_rate s / n); with staircase, s / n is rounded down
//   polynomial    (r - e) (1 - min(s, n) / n)^power + e, where e is end_learning_rate; with cycle,
//                 n is multiplied by max(1, s / n rounded up), so that it is never below s
//   cosine        r ((1 - alpha) (1 + cos(pi min(s, n) / n)) / 2 + alpha); with a warmup_target,
//                 the rate first changes linearly from r to the target over warmup_steps, and the
//                 cosine then starts from the target, with s counted from the end of the warm-up
//   restarts      r m_mul^i ((1 - alpha) (1 + cos(pi f)) / 2) + r alpha: one cosine decay after
//                 another. Decay i, counted from 0, takes n t_mul^i steps, and f is the fraction of
//                 these steps that have passed
//   piecewise     values[i], where i is the number of boundaries below s
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::optimizer {

enum class Decay {
  kNone,
  kExponential,
  kInverseTime,
  kPolynomial,
  kCosine,
  kCosineRestarts,
  kPiecewiseConstant
};

// Describes a schedule. Each kind of decay uses only the fields that are marked with its name.
struct Schedule {
  Decay decay = Decay::kNone;
  int64_t decay_steps = 0;          // all except piecewise constant
  double decay_rate = 0;            // exponential, inverse time
  bool staircase = false;           // exponential, inverse time
  double end_learning_rate = 1e-4;  // polynomial
  double power = 1;                 // polynomial
  bool cycle = false;               // polynomial
  double alpha = 0;                 // cosine, restarts
  double t_mul = 2, m_mul = 1;      // restarts
  double warmup_target = -1;        // cosine; below 0: no warm-up
  int64_t warmup_steps = 0;         // cosine
  std::vector<double> boundaries;   // piecewise constant: steps, ascending
  std::vector<double> values;       // piecewise constant: one more element than `boundaries`

  bool operator==(const Schedule&) const = default;
};

// Parses "exponential_decay", "inverse_time_decay", "polynomial_decay", "cosine_decay",
// "cosine_decay_restarts", "piecewise_constant_decay", and "" for none. For any other name, returns
// InvalidArgument with a message that lists the choices.
StatusOr<Decay> ParseDecay(std::string_view name);
std::string_view Name(Decay decay);

// Returns InvalidArgument if a field is invalid. The message contains the name of the field, its
// value and the allowed values.
Status Validate(const Schedule& schedule);

// Returns the learning rate in step `step`, counted from 0. `initial` is the initial rate.
double RateAt(const Schedule& schedule, double initial, int64_t step);

// Convert a schedule to and from JSON. ToJson returns all fields, or {} if there is no schedule.
// ParseSchedule returns InvalidArgument if the JSON does not describe a valid schedule (see
// Validate).
Json ToJson(const Schedule& schedule);
StatusOr<Schedule> ParseSchedule(const JsonField& json);

}  // namespace tfjob::optimizer
