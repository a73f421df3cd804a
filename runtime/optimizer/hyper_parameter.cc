#include "runtime/optimizer/hyper_parameter.h"

#include <initializer_list>

namespace tfjob::optimizer::internal {
namespace {

using O = Optimizer;
using enum Kind;

constexpr unsigned Of(std::initializer_list<Kind> kinds) {
  unsigned bits = 0;
  for (const Kind kind : kinds) bits |= 1u << static_cast<unsigned>(kind);
  return bits;
}

constexpr unsigned kMoments = Of({kAdam, kAdamW, kNadam, kAdamax, kLion});

constexpr HyperParameter kHyperParameters[] = {
    {"learning_rate", &O::learning_rate, kEveryKind, Range::kNotNegative},
    {"momentum", &O::momentum, Of({kSgd, kRmsprop}), Range::kBelowOne},
    {"nesterov", &O::nesterov, Of({kSgd})},
    {"initial_accumulator_value", &O::initial_accumulator_value, Of({kAdagrad, kFtrl}),
     Range::kNotNegative},
    {"beta_1", &O::beta_1, kMoments, Range::kBelowOne},
    {"beta_2", &O::beta_2, kMoments, Range::kBelowOne},
    {"rho", &O::rho, Of({kRmsprop, kAdadelta}), Range::kBelowOne},
    {"centered", &O::centered, Of({kRmsprop})},
    {"amsgrad", &O::amsgrad, Of({kAdam, kAdamW}), Range::kAny, true},
    {"epsilon", &O::epsilon, kEveryKind & ~Of({kSgd, kFtrl, kLion}), Range::kNotNegative},
    {"learning_rate_power", &O::learning_rate_power, Of({kFtrl}), Range::kNotPositive, true},
    {"l1_regularization_strength", &O::l1_regularization_strength, Of({kFtrl}), Range::kNotNegative,
     true},
    {"l2_regularization_strength", &O::l2_regularization_strength, Of({kFtrl}), Range::kNotNegative,
     true},
    {"l2_shrinkage_regularization_strength", &O::l2_shrinkage_regularization_strength, Of({kFtrl}),
     Range::kNotNegative, true},
    {"beta", &O::beta, Of({kFtrl}), Range::kNotNegative, true},
    {"weight_decay", &O::weight_decay, kEveryKind, Range::kNotNegative, true},
    {"use_ema", &O::use_ema, kEveryKind, Range::kAny, true},
    {"ema_momentum", &O::ema_momentum, kEveryKind, Range::kUpToOne, true},
    {"ema_overwrite_frequency", &O::ema_overwrite_frequency, kEveryKind, Range::kNotNegative, true},
    {"gradient_accumulation_steps", &O::gradient_accumulation_steps, kEveryKind,
     Range::kNotNegative, true},
    {"lazy", &O::lazy, kEveryKind, Range::kAny, true},
};

}  // namespace

std::span<const HyperParameter> HyperParameters() {
  return kHyperParameters;
}

}  // namespace tfjob::optimizer::internal
