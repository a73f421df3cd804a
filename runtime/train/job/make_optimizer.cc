#include "runtime/train/job/make_optimizer.h"

namespace tfjob::train {
namespace {

StatusOr<optimizer::Schedule> MakeSchedule(const config::ScheduleConfig& config) {
  optimizer::Schedule made;
  ASSIGN_OR_RETURN(made.decay, optimizer::ParseDecay(config.name));
  made.decay_steps = config.decay_steps.value_or(made.decay_steps);
  made.decay_rate = config.decay_rate.value_or(made.decay_rate);
  made.staircase = config.staircase.value_or(made.staircase);
  made.end_learning_rate = config.end_learning_rate.value_or(made.end_learning_rate);
  made.power = config.power.value_or(made.power);
  made.cycle = config.cycle.value_or(made.cycle);
  made.alpha = config.alpha.value_or(made.alpha);
  made.warmup_target = config.warmup_target.value_or(made.warmup_target);
  made.warmup_steps = config.warmup_steps.value_or(made.warmup_steps);
  made.t_mul = config.t_mul.value_or(made.t_mul);
  made.m_mul = config.m_mul.value_or(made.m_mul);
  if (config.first_decay_steps) made.decay_steps = *config.first_decay_steps;
  made.boundaries = config.boundaries;
  made.values = config.values;
  return made;
}

// Sets the hyperparameters that the training file specifies, except the learning rate.
void SetGiven(const config::OptimizerConfig& config, optimizer::Optimizer& made) {
  const auto set = [](auto& member, const auto& given) { member = given.value_or(member); };
  set(made.momentum, config.momentum);
  set(made.nesterov, config.nesterov);
  set(made.initial_accumulator_value, config.initial_accumulator_value);
  set(made.beta_1, config.beta_1);
  set(made.beta_2, config.beta_2);
  set(made.rho, config.rho);
  set(made.centered, config.centered);
  set(made.amsgrad, config.amsgrad);
  set(made.epsilon, config.epsilon);
  set(made.learning_rate_power, config.learning_rate_power);
  set(made.l1_regularization_strength, config.l1_regularization_strength);
  set(made.l2_regularization_strength, config.l2_regularization_strength);
  set(made.l2_shrinkage_regularization_strength, config.l2_shrinkage_regularization_strength);
  set(made.beta, config.beta);
  set(made.weight_decay, config.weight_decay);
  made.exclude_from_weight_decay = config.exclude_from_weight_decay;
  set(made.use_ema, config.use_ema);
  set(made.lazy, config.lazy);
  set(made.ema_momentum, config.ema_momentum);
  set(made.ema_overwrite_frequency, config.ema_overwrite_frequency);
  set(made.gradient_accumulation_steps, config.gradient_accumulation_steps);
}

}  // namespace

StatusOr<optimizer::Optimizer> MakeOptimizer(const config::OptimizerConfig& config) {
  ASSIGN_OR_RETURN(const optimizer::Kind kind,
                   optimizer::ParseKind(config.name.empty() ? "sgd" : config.name));
  optimizer::Optimizer made = optimizer::Optimizer::Default(kind);
  made.learning_rate = config.learning_rate.value_or(made.learning_rate);
  ASSIGN_OR_RETURN(made.schedule, MakeSchedule(config.learning_rate_schedule));
  if (made.schedule.decay == optimizer::Decay::kPiecewiseConstant && config.learning_rate) {
    return InvalidArgument("optimizer.learning_rate: piecewise_constant_decay takes every rate ",
                           "from learning_rate_schedule.values; remove it");
  }
  SetGiven(config, made);
  RETURN_IF_ERROR(Annotate(optimizer::Validate(made), "optimizer"));
  return made;
}

optimizer::Clipping ClippingOf(const config::OptimizerConfig& config) {
  using optimizer::ClipKind;
  if (config.clipvalue) return {ClipKind::kValue, *config.clipvalue};
  if (config.clipnorm) return {ClipKind::kNorm, *config.clipnorm};
  if (config.global_clipnorm) return {ClipKind::kGlobalNorm, *config.global_clipnorm};
  return {};
}

}  // namespace tfjob::train
