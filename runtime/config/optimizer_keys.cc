// Defines the keys of the `optimizer` section.
#include <limits>
#include <utility>

#include "runtime/config/bind.h"

namespace tfjob::config {
namespace {

using C = TrainingConfig;

Key Hyper(const char* name, Binding binding, double minimum, std::vector<std::string> optimizers,
          const char* unset, const char* doc) {
  KeyType type = KeyType::kNumber;
  if (std::holds_alternative<Ref<std::optional<bool>>>(binding)) type = KeyType::kBool;
  if (std::holds_alternative<Ref<std::optional<int64_t>>>(binding)) type = KeyType::kInteger;
  if (std::holds_alternative<Ref<std::vector<std::string>>>(binding)) type = KeyType::kStrings;
  return {.path = StrCat("optimizer.", name),
          .type = type,
          .binding = binding,
          .doc = doc,
          .minimum = minimum,
          .when_key = optimizers.empty() ? "" : "optimizer.name",
          .when_values = std::move(optimizers),
          .unset_doc = unset};
}

constexpr char kScheduleAt[] = "optimizer.learning_rate_schedule.";

void AddScheduleName(std::vector<Key>& keys) {
  keys.push_back(
      {.path = StrCat(kScheduleAt, "name"),
       .type = KeyType::kString,
       .binding =
           Bind<&C::optimizer, &OptimizerConfig::learning_rate_schedule, &ScheduleConfig::name>(),
       .doc = "How the learning rate changes with the step, as in Keras' schedules.",
       .choices = {"exponential_decay", "inverse_time_decay", "polynomial_decay", "cosine_decay",
                   "cosine_decay_restarts", "piecewise_constant_decay"},
       .unset_doc = "constant"});
}

void AddScheduleKeys(std::vector<Key>& keys) {
  using S = ScheduleConfig;
  using enum KeyType;
  constexpr auto kOf = &C::optimizer;
  constexpr auto kSchedule = &OptimizerConfig::learning_rate_schedule;
  const std::string at = kScheduleAt;
  AddScheduleName(keys);
  const auto add = [&](const char* name, KeyType type, Binding binding,
                       std::vector<std::string> schedules, const char* unset, const char* doc) {
    keys.push_back({.path = at + name,
                    .type = type,
                    .binding = binding,
                    .doc = doc,
                    .minimum = 0,
                    .when_key = at + "name",
                    .when_values = std::move(schedules),
                    .unset_doc = unset});
  };
  add("decay_steps", kInteger, Bind<kOf, kSchedule, &S::decay_steps>(),
      {"exponential_decay", "inverse_time_decay", "polynomial_decay", "cosine_decay"}, "required",
      "Number of steps over which the learning rate decays once.");
  add("decay_rate", kNumber, Bind<kOf, kSchedule, &S::decay_rate>(),
      {"exponential_decay", "inverse_time_decay"}, "required",
      "Every decay_steps steps, `exponential_decay` multiplies the learning rate by this number, "
      "and `inverse_time_decay` adds it to the divisor, which starts at 1.");
  add("staircase", kBool, Bind<kOf, kSchedule, &S::staircase>(),
      {"exponential_decay", "inverse_time_decay"}, "false",
      "Decay once every decay_steps steps, not continuously.");
  add("end_learning_rate", kNumber, Bind<kOf, kSchedule, &S::end_learning_rate>(),
      {"polynomial_decay"}, "0.0001", "Learning rate at the end of the decay.");
  add("power", kNumber, Bind<kOf, kSchedule, &S::power>(), {"polynomial_decay"}, "1",
      "Exponent of the polynomial. 1: the decay is linear.");
  add("cycle", kBool, Bind<kOf, kSchedule, &S::cycle>(), {"polynomial_decay"}, "false",
      "At the end of each decay, raise the learning rate and decay again, instead of staying at "
      "end_learning_rate.");
  add("first_decay_steps", kInteger, Bind<kOf, kSchedule, &S::first_decay_steps>(),
      {"cosine_decay_restarts"}, "required", "Number of steps of the first decay.");
  add("t_mul", kNumber, Bind<kOf, kSchedule, &S::t_mul>(), {"cosine_decay_restarts"}, "2",
      "Each decay has this many times the steps of the one before it. At least 1.");
  add("m_mul", kNumber, Bind<kOf, kSchedule, &S::m_mul>(), {"cosine_decay_restarts"}, "1",
      "Each decay starts from this many times the learning rate of the one before it.");
  add("alpha", kNumber, Bind<kOf, kSchedule, &S::alpha>(),
      {"cosine_decay", "cosine_decay_restarts"}, "0",
      "Final learning rate, as a fraction of the rate at which the decay starts.");
  add("warmup_target", kNumber, Bind<kOf, kSchedule, &S::warmup_target>(), {"cosine_decay"},
      "no warm-up",
      "Before the decay, the learning rate changes linearly from learning_rate to this value.");
  add("warmup_steps", kInteger, Bind<kOf, kSchedule, &S::warmup_steps>(), {"cosine_decay"}, "0",
      "Number of steps that the change to warmup_target takes.");
  add("boundaries", kNumbers, Bind<kOf, kSchedule, &S::boundaries>(), {"piecewise_constant_decay"},
      "required", "Steps in ascending order; after each of them, the next of the values applies.");
  add("values", kNumbers, Bind<kOf, kSchedule, &S::values>(), {"piecewise_constant_decay"},
      "required",
      "Learning rates, one more than there are boundaries. learning_rate must not be set.");
}

void AddFtrlKeys(std::vector<Key>& keys) {
  using O = OptimizerConfig;
  constexpr auto kOf = &C::optimizer;
  keys.push_back(Hyper("learning_rate_power", Bind<kOf, &O::learning_rate_power>(),
                       -std::numeric_limits<double>::infinity(), {"ftrl"}, "-0.5",
                       "Exponent with which the learning rate depends on the sum of squared "
                       "gradients; 0: it does not."));
  keys.back().maximum = 0;
  keys.push_back(Hyper("l1_regularization_strength", Bind<kOf, &O::l1_regularization_strength>(), 0,
                       {"ftrl"}, "0", "Strength of the L1 penalty, which makes weights zero."));
  keys.push_back(Hyper("l2_regularization_strength", Bind<kOf, &O::l2_regularization_strength>(), 0,
                       {"ftrl"}, "0", "Strength of the L2 penalty."));
  keys.push_back(Hyper("l2_shrinkage_regularization_strength",
                       Bind<kOf, &O::l2_shrinkage_regularization_strength>(), 0, {"ftrl"}, "0",
                       "Strength of an L2 penalty that is added to the gradient."));
  keys.push_back(Hyper("beta", Bind<kOf, &O::beta>(), 0, {"ftrl"}, "0",
                       "Constant added to the square root of the sum of squared gradients."));
}

// Adds the options that every optimizer has.
void AddCommonOptimizerKeys(std::vector<Key>& keys) {
  using O = OptimizerConfig;
  constexpr auto kOf = &C::optimizer;
  keys.push_back(Hyper("weight_decay", Bind<kOf, &O::weight_decay>(), 0, {},
                       "adamw 0.004, others none",
                       "Before each update, multiply the variables by 1 − learning rate · "
                       "weight_decay."));
  keys.push_back(
      Hyper("exclude_from_weight_decay", Bind<kOf, &O::exclude_from_weight_decay>(), 0, {}, "",
            "Regular expressions in RE2's syntax, such as `bias`. A variable does not decay if one "
            "of them matches a part of its name (`dense_1/bias`), or a part of the name's last "
            "component (`bias`), which is where Keras searches."));
  keys.push_back(
      Hyper("use_ema", Bind<kOf, &O::use_ema>(), 0, {}, "false",
            "Keep an exponential moving average of the variables. At the end of the run, the "
            "average replaces the variables, in the last checkpoint and in the last evaluation."));
  keys.push_back(Hyper("ema_momentum", Bind<kOf, &O::ema_momentum>(), 0, {}, "0.99",
                       "Weight of the previous average in each step; the variable has the "
                       "remaining weight. Needs use_ema."));
  keys.back().maximum = 1;
  keys.push_back(Hyper("ema_overwrite_frequency", Bind<kOf, &O::ema_overwrite_frequency>(), 1, {},
                       "only at the end",
                       "Interval, in updates, at which the averages replace the variables. Needs "
                       "use_ema."));
  keys.push_back(
      Hyper("gradient_accumulation_steps", Bind<kOf, &O::gradient_accumulation_steps>(), 2, {},
            "every step",
            "Number of steps per update of the variables. An update uses the mean of the gradients "
            "since the last update, which is clipped if a limit is set. Cannot be combined with "
            "asynchronous parameter servers, nor with synchronous ones if gradients are clipped."));
  keys.push_back(
      Hyper("lazy", Bind<kOf, &O::lazy>(), 0, {}, "false",
            "Leave the rows of a table that a batch does not contain, and their slots, unchanged. "
            "By default, such rows are updated with a gradient of zero, as in Keras. Cannot be "
            "combined with use_ema or gradient_accumulation_steps."));
}

}  // namespace

void AddOptimizerKeys(std::vector<Key>& keys) {
  using O = OptimizerConfig;
  constexpr auto kOf = &C::optimizer;
  keys.push_back({.path = "optimizer.name",
                  .type = KeyType::kString,
                  .binding = Bind<kOf, &O::name>(),
                  .doc = "The optimizer, with Keras' arithmetic and defaults. `optimizer: NAME` is "
                         "the short form.",
                  .choices = {"sgd", "adagrad", "adam", "rmsprop", "adamw", "nadam", "adamax",
                              "adadelta", "ftrl", "lion"},
                  .unset_doc = "that of model.file, or else `sgd`"});
  keys.push_back(Hyper("learning_rate", Bind<kOf, &O::learning_rate>(), 0, {},
                       "sgd 0.01, others 0.001",
                       "Learning rate; if there is a schedule, the initial one."));
  AddScheduleKeys(keys);
  keys.push_back(Hyper("momentum", Bind<kOf, &O::momentum>(), 0, {"sgd", "rmsprop"}, "0",
                       "Fraction of the previous update that is added to the next one."));
  keys.push_back(Hyper("nesterov", Bind<kOf, &O::nesterov>(), 0, {"sgd"}, "false",
                       "Use Nesterov's momentum."));
  keys.push_back(Hyper("initial_accumulator_value", Bind<kOf, &O::initial_accumulator_value>(), 0,
                       {"adagrad", "ftrl"}, "0.1",
                       "Initial value of the sum of squared gradients."));
  const std::vector<std::string> moments = {"adam", "adamw", "nadam", "adamax", "lion"};
  keys.push_back(Hyper("beta_1", Bind<kOf, &O::beta_1>(), 0, moments, "0.9",
                       "Decay rate of the gradient's first moment."));
  keys.push_back(Hyper("beta_2", Bind<kOf, &O::beta_2>(), 0, moments, "0.999; lion 0.99",
                       "Decay rate of the gradient's second moment (`adamax`: of its norm; `lion`: "
                       "of the first moment that is stored)."));
  keys.push_back(Hyper("amsgrad", Bind<kOf, &O::amsgrad>(), 0, {"adam", "adamw"}, "false",
                       "Divide by the largest second moment so far."));
  keys.push_back(Hyper("rho", Bind<kOf, &O::rho>(), 0, {"rmsprop", "adadelta"},
                       "0.9; adadelta 0.95", "Decay rate of the gradient's mean square."));
  keys.push_back(
      Hyper("centered", Bind<kOf, &O::centered>(), 0, {"rmsprop"}, "false",
            "Normalise gradients by their estimated variance instead of their mean square."));
  keys.push_back(Hyper("epsilon", Bind<kOf, &O::epsilon>(), 0,
                       {"adagrad", "adam", "rmsprop", "adamw", "nadam", "adamax", "adadelta"},
                       "1e-07",
                       "Small constant added to the denominator for numerical stability."));
  AddFtrlKeys(keys);
  AddCommonOptimizerKeys(keys);
  keys.push_back(
      Hyper("clipvalue", Bind<kOf, &O::clipvalue>(), 0, {}, "no clipping",
            "Clip every element of a gradient to the range from -clipvalue to clipvalue. "
            "At most one of clipvalue, clipnorm and global_clipnorm may be set."));
  keys.push_back(
      Hyper("clipnorm", Bind<kOf, &O::clipnorm>(), 0, {}, "no clipping",
            "Scale the gradient of each variable so that its norm is at most this number."));
  keys.push_back(Hyper("global_clipnorm", Bind<kOf, &O::global_clipnorm>(), 0, {}, "no clipping",
                       "Scale all gradients so that their global norm is at most this number."));
  for (Key& key : keys) {
    const bool decays = key.path == "optimizer.momentum" || key.path == "optimizer.rho" ||
                        key.path == "optimizer.beta_1" || key.path == "optimizer.beta_2";
    if (decays) key.maximum = 1;
  }
}

}  // namespace tfjob::config
