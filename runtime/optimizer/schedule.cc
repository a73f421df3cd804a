#include "runtime/optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

namespace tfjob::optimizer {
namespace {

constexpr Decay kDecays[] = {
    Decay::kNone,   Decay::kExponential,    Decay::kInverseTime,       Decay::kPolynomial,
    Decay::kCosine, Decay::kCosineRestarts, Decay::kPiecewiseConstant,
};

Status Check(bool holds, std::string_view name, double value, std::string_view allowed) {
  if (holds) return OkStatus();
  return InvalidArgument("learning_rate_schedule: ", name, " is ", value, ": it must be ", allowed);
}

bool NotNegative(double value) {
  return std::isfinite(value) && value >= 0;
}

Status ValidatePieces(const Schedule& s) {
  if (s.boundaries.empty() || s.values.size() != s.boundaries.size() + 1) {
    return InvalidArgument("learning_rate_schedule: ", s.boundaries.size(), " boundaries and ",
                           s.values.size(),
                           " values: expected at least one boundary, and one more value");
  }
  if (!std::is_sorted(s.boundaries.begin(), s.boundaries.end(), std::less_equal<>())) {
    return InvalidArgument("learning_rate_schedule: boundaries must be ascending");
  }
  for (double value : s.values) {
    RETURN_IF_ERROR(Check(NotNegative(value), "one of values", value, "a number, 0 or more"));
  }
  return OkStatus();
}

double Quotient(const Schedule& s, double step) {
  const double quotient = step / static_cast<double>(s.decay_steps);
  return s.staircase ? std::floor(quotient) : quotient;
}

double Polynomial(const Schedule& s, double initial, double step) {
  auto steps = static_cast<double>(s.decay_steps);
  if (s.cycle) {
    steps *= std::max(1.0, std::ceil(step / steps));
  } else {
    step = std::min(step, steps);
  }
  return (initial - s.end_learning_rate) * std::pow(1 - step / steps, s.power) +
         s.end_learning_rate;
}

double Cosine(const Schedule& s, double initial, double step) {
  if (s.warmup_target >= 0) {
    const auto warm_up = static_cast<double>(s.warmup_steps);
    if (step < warm_up) return initial + (s.warmup_target - initial) * step / warm_up;
    step -= warm_up;
    initial = s.warmup_target;
  }
  const auto steps = static_cast<double>(s.decay_steps);
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * std::min(step, steps) / steps));
  return initial * ((1 - s.alpha) * wave + s.alpha);
}

// Returns the total length of the first `count` decays, in multiples of the length of the first
// decay.
double LengthOf(const Schedule& s, double count) {
  return s.t_mul == 1 ? count : (std::pow(s.t_mul, count) - 1) / (s.t_mul - 1);
}

double CosineRestarts(const Schedule& s, double initial, double step) {
  const double passed = step / static_cast<double>(s.decay_steps);
  double restarts =
      std::floor(s.t_mul == 1 ? passed : std::log(1 + passed * (s.t_mul - 1)) / std::log(s.t_mul));
  // Correct rounding errors of the logarithms. Otherwise, the result could be the end of one decay
  // instead of the start of the next decay.
  if (LengthOf(s, restarts + 1) <= passed) ++restarts;
  if (LengthOf(s, restarts) > passed) --restarts;
  const double part = (passed - LengthOf(s, restarts)) / std::pow(s.t_mul, restarts);
  const double wave = 0.5 * std::pow(s.m_mul, restarts) * (1 + std::cos(std::numbers::pi * part));
  return initial * ((1 - s.alpha) * wave + s.alpha);
}

}  // namespace

StatusOr<Decay> ParseDecay(std::string_view name) {
  for (Decay decay : kDecays) {
    if (Name(decay) == name) return decay;
  }
  return InvalidArgument("there is no learning rate schedule \"", name,
                         "\": use exponential_decay, inverse_time_decay, polynomial_decay, "
                         "cosine_decay, cosine_decay_restarts or piecewise_constant_decay");
}

std::string_view Name(Decay decay) {
  switch (decay) {
    case Decay::kNone:
      return "";
    case Decay::kExponential:
      return "exponential_decay";
    case Decay::kInverseTime:
      return "inverse_time_decay";
    case Decay::kPolynomial:
      return "polynomial_decay";
    case Decay::kCosine:
      return "cosine_decay";
    case Decay::kCosineRestarts:
      return "cosine_decay_restarts";
    case Decay::kPiecewiseConstant:
      return "piecewise_constant_decay";
  }
  return "";
}

Status Validate(const Schedule& s) {
  if (s.decay == Decay::kPiecewiseConstant) return ValidatePieces(s);
  if (!s.boundaries.empty() || !s.values.empty()) {
    return InvalidArgument("learning_rate_schedule: ", s.boundaries.size(), " boundaries and ",
                           s.values.size(), " values: only piecewise_constant_decay has them");
  }
  if (s.decay == Decay::kNone) return OkStatus();
  const bool restarts = s.decay == Decay::kCosineRestarts;
  RETURN_IF_ERROR(Check(s.decay_steps >= 1, restarts ? "first_decay_steps" : "decay_steps",
                        static_cast<double>(s.decay_steps), "1 or more"));
  RETURN_IF_ERROR(Check(std::isfinite(s.t_mul) && s.t_mul >= 1, "t_mul", s.t_mul, "1 or more"));
  RETURN_IF_ERROR(Check(NotNegative(s.m_mul), "m_mul", s.m_mul, "a number, 0 or more"));
  if (s.decay == Decay::kExponential || s.decay == Decay::kInverseTime) {
    RETURN_IF_ERROR(Check(std::isfinite(s.decay_rate) && s.decay_rate > 0, "decay_rate",
                          s.decay_rate, "a number above 0"));
  }
  RETURN_IF_ERROR(Check(NotNegative(s.end_learning_rate), "end_learning_rate", s.end_learning_rate,
                        "a number, 0 or more"));
  RETURN_IF_ERROR(Check(NotNegative(s.power), "power", s.power, "a number, 0 or more"));
  RETURN_IF_ERROR(Check(s.alpha >= 0 && s.alpha <= 1, "alpha", s.alpha, "between 0 and 1"));
  RETURN_IF_ERROR(
      Check(std::isfinite(s.warmup_target), "warmup_target", s.warmup_target, "a number"));
  return Check(s.warmup_steps >= 0, "warmup_steps", static_cast<double>(s.warmup_steps),
               "0 or more");
}

double RateAt(const Schedule& s, double initial, int64_t step) {
  const auto at = static_cast<double>(step);
  switch (s.decay) {
    case Decay::kNone:
      return initial;
    case Decay::kExponential:
      return initial * std::pow(s.decay_rate, Quotient(s, at));
    case Decay::kInverseTime:
      return initial / (1 + s.decay_rate * Quotient(s, at));
    case Decay::kPolynomial:
      return Polynomial(s, initial, at);
    case Decay::kCosine:
      return Cosine(s, initial, at);
    case Decay::kCosineRestarts:
      return CosineRestarts(s, initial, at);
    case Decay::kPiecewiseConstant:
      break;
  }
  const auto passed = std::lower_bound(s.boundaries.begin(), s.boundaries.end(), at);
  return s.values[static_cast<size_t>(passed - s.boundaries.begin())];
}

Json ToJson(const Schedule& s) {
  if (s.decay == Decay::kNone) return Json::object();
  return {{"name", std::string(Name(s.decay))},
          {"decay_steps", s.decay_steps},
          {"decay_rate", s.decay_rate},
          {"staircase", s.staircase},
          {"end_learning_rate", s.end_learning_rate},
          {"power", s.power},
          {"cycle", s.cycle},
          {"alpha", s.alpha},
          {"t_mul", s.t_mul},
          {"m_mul", s.m_mul},
          {"warmup_target", s.warmup_target},
          {"warmup_steps", s.warmup_steps},
          {"boundaries", s.boundaries},
          {"values", s.values}};
}

StatusOr<Schedule> ParseSchedule(const JsonField& json) {
  Schedule s;
  ASSIGN_OR_RETURN(const std::string name, json["name"].StringOr(""));
  ASSIGN_OR_RETURN(s.decay, ParseDecay(name));
  if (s.decay == Decay::kNone) return s;
  ASSIGN_OR_RETURN(s.decay_steps, json["decay_steps"].Int());
  ASSIGN_OR_RETURN(s.decay_rate, json["decay_rate"].Double());
  ASSIGN_OR_RETURN(s.staircase, json["staircase"].Bool());
  ASSIGN_OR_RETURN(s.end_learning_rate, json["end_learning_rate"].Double());
  ASSIGN_OR_RETURN(s.power, json["power"].Double());
  ASSIGN_OR_RETURN(s.cycle, json["cycle"].Bool());
  ASSIGN_OR_RETURN(s.alpha, json["alpha"].Double());
  ASSIGN_OR_RETURN(s.t_mul, json["t_mul"].Double());
  ASSIGN_OR_RETURN(s.m_mul, json["m_mul"].Double());
  ASSIGN_OR_RETURN(s.warmup_target, json["warmup_target"].Double());
  ASSIGN_OR_RETURN(s.warmup_steps, json["warmup_steps"].Int());
  for (auto [name, list] : {std::pair{"boundaries", &s.boundaries}, {"values", &s.values}}) {
    ASSIGN_OR_RETURN(auto elements, json[name].Elements());
    for (const JsonField& element : elements) {
      ASSIGN_OR_RETURN(const double value, element.Double());
      list->push_back(value);
    }
  }
  RETURN_IF_ERROR(Validate(s));
  return s;
}

}  // namespace tfjob::optimizer
