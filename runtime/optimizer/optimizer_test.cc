#include "runtime/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/kernels/stream.h"
#include "runtime/optimizer/apply_kernel.h"

namespace tfjob::optimizer {
namespace {

// Performs the update of Keras 3 on one element in double precision. Returns the new w. `state`
// contains the values of the slots, in the order of Slots().
using Reference = std::function<double(double w, double g, double t, std::vector<double>& state)>;

struct Case {
  const char* name;
  Optimizer optimizer;
  Reference reference;
};

Optimizer Make(Kind kind, double rate, const std::function<void(Optimizer&)>& change = {}) {
  Optimizer optimizer = Optimizer::Default(kind);
  optimizer.learning_rate = rate;
  if (change) change(optimizer);
  return optimizer;
}

double Rms(double& v, double g) {
  return v = 0.9 * v + 0.1 * g * g;
}

double Squared(double x) {
  return x * x;
}

// Return u_t of Nadam, and the product u_1 … u_t.
double NadamMomentum(double t) {
  return 0.9 * (1 - 0.5 * std::pow(0.96, t));
}
double NadamProduct(double t) {
  double product = 1;
  for (int i = 1; i <= t; ++i) product *= NadamMomentum(i);
  return product;
}

Reference FtrlReference(double l1, double l2, double shrinkage, double beta, double power) {
  return [=](double w, double g, double, std::vector<double>& s) {
    const double lr = 0.05, strength = l2 + beta / (2 * lr);
    const double sum = s[0] + g * g;
    s[1] += g + 2 * shrinkage * w - (std::pow(sum, power) - std::pow(s[0], power)) / lr * w;
    s[0] = sum;
    const double clipped = std::min(std::max(s[1], -l1), l1);
    return (clipped - s[1]) / (std::pow(sum, power) / lr + 2 * strength);
  };
}

std::vector<Case> NewerCases() {
  return {
      {"AdamW", Make(Kind::kAdamW, 0.001),
       [](double w, double g, double t, auto& s) {
         const double alpha = 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
         w -= w * 0.001 * 0.004;
         s[0] += (g - s[0]) * (1 - 0.9);
         s[1] += (g * g - s[1]) * (1 - 0.999);
         return w - s[0] * alpha / (std::sqrt(s[1]) + 1e-7);
       }},
      {"Adam with amsgrad", Make(Kind::kAdam, 0.001, [](Optimizer& o) { o.amsgrad = true; }),
       [](double w, double g, double t, auto& s) {
         const double alpha = 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
         s[0] += (g - s[0]) * (1 - 0.9);
         s[1] += (g * g - s[1]) * (1 - 0.999);
         s[2] = std::max(s[2], s[1]);
         return w - s[0] * alpha / (std::sqrt(s[2]) + 1e-7);
       }},
      {"Nadam", Make(Kind::kNadam, 0.001),
       [](double w, double g, double t, auto& s) {
         s[0] += (g - s[0]) * (1 - 0.9);
         s[1] += (g * g - s[1]) * (1 - 0.999);
         const double m = NadamMomentum(t + 1) * s[0] / (1 - NadamProduct(t + 1)) +
                          (1 - NadamMomentum(t)) * g / (1 - NadamProduct(t));
         return w - m * 0.001 / (std::sqrt(s[1] / (1 - std::pow(0.999, t))) + 1e-7);
       }},
      {"Adamax", Make(Kind::kAdamax, 0.001),
       [](double w, double g, double t, auto& s) {
         s[0] += (g - s[0]) * (1 - 0.9);
         s[1] = std::max(0.999 * s[1], std::abs(g));
         return w - 0.001 * s[0] / ((1 - std::pow(0.9, t)) * (s[1] + 1e-7));
       }},
      {"Adadelta", Make(Kind::kAdadelta, 1),
       [](double w, double g, double, auto& s) {
         s[0] = 0.95 * s[0] + (1 - 0.95) * g * g;
         const double change = -std::sqrt(s[1] + 1e-7) * g / std::sqrt(s[0] + 1e-7);
         s[1] = 0.95 * s[1] + (1 - 0.95) * Squared(change);
         return w + change;
       }},
      {"Ftrl", Make(Kind::kFtrl, 0.05), FtrlReference(0, 0, 0, 0, 0.5)},
      {"Ftrl with penalties",
       Make(Kind::kFtrl, 0.05,
            [](Optimizer& o) {
              o.l1_regularization_strength = 0.3;
              o.l2_regularization_strength = 0.2;
              o.l2_shrinkage_regularization_strength = 0.1;
              o.beta = 0.4;
              o.learning_rate_power = -0.7;
            }),
       FtrlReference(0.3, 0.2, 0.1, 0.4, 0.7)},
      {"Lion", Make(Kind::kLion, 0.01),
       [](double w, double g, double, auto& s) {
         const double direction = 0.9 * s[0] + (1 - 0.9) * g;
         s[0] = 0.99 * s[0] + (1 - 0.99) * g;
         return w - 0.01 * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
       }},
  };
}

std::vector<Case> CasesOfOptions() {
  return {
      {"SGD with weight decay", Make(Kind::kSgd, 0.1, [](Optimizer& o) { o.weight_decay = 0.5; }),
       [](double w, double g, double, auto&) { return w - w * 0.1 * 0.5 - 0.1 * g; }},
      {"SGD with an average",
       Make(Kind::kSgd, 0.1,
            [](Optimizer& o) {
              o.use_ema = true;
              o.ema_momentum = 0.7;
            }),
       [](double w, double g, double t, auto& s) {
         w -= 0.1 * g;
         s[0] = t == 1 ? w : 0.7 * s[0] + (1 - 0.7) * w;
         return w;
       }},
      {"SGD that starts again from the average",
       Make(Kind::kSgd, 0.1,
            [](Optimizer& o) {
              o.use_ema = true;
              o.ema_momentum = 0.7;
              o.ema_overwrite_frequency = 3;
            }),
       [](double w, double g, double t, auto& s) {
         w -= 0.1 * g;
         s[0] = t == 1 ? w : 0.7 * s[0] + (1 - 0.7) * w;
         return std::fmod(t, 3) == 0 ? s[0] : w;
       }},
      // The reference receives the number of the step, counted from 1. Two steps result in one
      // update.
      {"Adam with accumulation, decay and an average",
       Make(Kind::kAdam, 0.001,
            [](Optimizer& o) {
              o.gradient_accumulation_steps = 2;
              o.weight_decay = 0.3;
              o.use_ema = true;
            }),
       [](double w, double g, double step, auto& s) {
         s[3] += g;
         const double t = std::ceil(step / 2);
         if (std::fmod(step, 2) == 0) {
           const double alpha = 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
           const double mean = s[3] / 2;
           w -= w * 0.001 * 0.3;
           s[0] += (mean - s[0]) * (1 - 0.9);
           s[1] += (mean * mean - s[1]) * (1 - 0.999);
           w -= s[0] * alpha / (std::sqrt(s[1]) + 1e-7);
           s[3] = 0;
         }
         s[2] = t == 1 ? w : 0.99 * s[2] + (1 - 0.99) * w;
         return w;
       }},
  };
}

std::vector<Case> OlderCases() {
  return {
      {"SGD", Make(Kind::kSgd, 0.1), [](double w, double g, double, auto&) { return w - 0.1 * g; }},
      {"SGD with momentum", Make(Kind::kSgd, 0.1, [](Optimizer& o) { o.momentum = 0.9; }),
       [](double w, double g, double, auto& s) {
         s[0] = s[0] * 0.9 - g * 0.1;
         return w + s[0];
       }},
      {"SGD with Nesterov's momentum",
       Make(Kind::kSgd, 0.1,
            [](Optimizer& o) {
              o.momentum = 0.9;
              o.nesterov = true;
            }),
       [](double w, double g, double, auto& s) {
         s[0] = s[0] * 0.9 - g * 0.1;
         return w + s[0] * 0.9 - g * 0.1;
       }},
      {"Adagrad", Make(Kind::kAdagrad, 0.05),
       [](double w, double g, double, auto& s) {
         s[0] += g * g;
         return w - 0.05 * g / std::sqrt(s[0] + 1e-7);
       }},
      {"TensorFlow 1's Adagrad", Make(Kind::kAdagrad, 0.01, [](Optimizer& o) { o.epsilon = 0; }),
       [](double w, double g, double, auto& s) {
         s[0] += g * g;
         return w - 0.01 * g / std::sqrt(s[0]);
       }},
      {"Adam", Make(Kind::kAdam, 0.001),
       [](double w, double g, double t, auto& s) {
         const double alpha = 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
         s[0] += (g - s[0]) * (1 - 0.9);
         s[1] += (g * g - s[1]) * (1 - 0.999);
         return w - s[0] * alpha / (std::sqrt(s[1]) + 1e-7);
       }},
      {"RMSprop", Make(Kind::kRmsprop, 0.01),
       [](double w, double g, double, auto& s) {
         return w - 0.01 * g / std::sqrt(Rms(s[0], g) + 1e-7);
       }},
      {"RMSprop with momentum", Make(Kind::kRmsprop, 0.01, [](Optimizer& o) { o.momentum = 0.5; }),
       [](double w, double g, double, auto& s) {
         s[1] = 0.5 * s[1] + 0.01 * g / std::sqrt(Rms(s[0], g) + 1e-7);
         return w - s[1];
       }},
      {"RMSprop centered, with momentum",
       Make(Kind::kRmsprop, 0.01,
            [](Optimizer& o) {
              o.centered = true;
              o.momentum = 0.5;
            }),
       [](double w, double g, double, auto& s) {
         s[1] = 0.9 * s[1] + 0.1 * g;
         s[2] = 0.5 * s[2] + 0.01 * g / std::sqrt(Rms(s[0], g) - s[1] * s[1] + 1e-7);
         return w - s[2];
       }},
  };
}

std::vector<Case> Cases() {
  std::vector<Case> cases = OlderCases();
  for (Case& newer : NewerCases()) cases.push_back(std::move(newer));
  for (Case& options : CasesOfOptions()) cases.push_back(std::move(options));
  return cases;
}

double Gradient(size_t element, int step) {
  return std::sin(static_cast<double>(element) + 1.7 * step) * (step % 2 == 0 ? 1 : 0.3);
}

template <typename T>
struct State {
  std::vector<T> variable, gradient;
  std::vector<std::vector<T>> slots;

  State(const Optimizer& optimizer, size_t count) : variable(count), gradient(count) {
    for (size_t i = 0; i < count; ++i) variable[i] = static_cast<T>(std::cos(i));
    for (const Slot& slot : Slots(optimizer)) {
      slots.emplace_back(count, static_cast<T>(slot.initial_value));
    }
  }
};

template <typename T>
void CheckSteps(const Case& test, size_t count, ThreadPool* pool, double tolerance) {
  SCOPED_TRACE(StrCat(test.name, ", ", count, " elements"));
  State<T> state(test.optimizer, count);
  State<double> exact(test.optimizer, count);
  kernels::Stream stream(pool);
  for (int step = 0; step < 6; ++step) {
    for (size_t i = 0; i < count; ++i) state.gradient[i] = static_cast<T>(2 * Gradient(i, step));
    std::vector<std::span<T>> slots(state.slots.begin(), state.slots.end());
    Apply(test.optimizer, step, std::span<T>(state.variable), std::span<const T>(state.gradient),
          std::span<const std::span<T>>(slots), stream, T{0.5});
    for (size_t i = 0; i < count; ++i) {
      std::vector<double> element;
      for (const auto& slot : exact.slots) element.push_back(slot[i]);
      const double g = static_cast<double>(state.gradient[i]) * 0.5;
      exact.variable[i] = test.reference(exact.variable[i], g, step + 1, element);
      ASSERT_NEAR(state.variable[i], exact.variable[i], tolerance) << "step " << step << ", " << i;
      for (size_t s = 0; s < element.size(); ++s) {
        exact.slots[s][i] = element[s];
        ASSERT_NEAR(state.slots[s][i], element[s],
                    2 * tolerance * std::max(1.0, std::abs(element[s])))
            << "slot " << s << ", step " << step;
      }
    }
  }
}

TEST(ApplyTest, FollowsKerasForSeveralSteps) {
  ThreadPool pool("apply", 2);
  for (const Case& test : Cases()) {
    for (size_t count : {0u, 1u, 13u, 2501u}) {
      CheckSteps<float>(test, count, nullptr, 1e-6);
      CheckSteps<double>(test, count, nullptr, 1e-14);
    }
  }
  CheckSteps<float>(Cases().back(), 40001, &pool, 1e-6);
}

// If the gradient remains 0, the moments must decay to 0 instead of remaining subnormal, because
// arithmetic on subnormal numbers is slow.
TEST(ApplyTest, MomentsThatDecayEndAtZero) {
  for (const Case& test : Cases()) {
    State<float> state(test.optimizer, 40);
    for (auto& slot : state.slots) std::ranges::fill(slot, 1.5e-38f);
    kernels::Stream stream;
    for (int step = 0; step < 3; ++step) {
      std::vector<std::span<float>> slots(state.slots.begin(), state.slots.end());
      Apply(test.optimizer, 5, std::span<float>(state.variable),
            std::span<const float>(state.gradient), std::span<const std::span<float>>(slots),
            stream);
    }
    for (const auto& slot : state.slots) {
      for (float value : slot) {
        EXPECT_TRUE(value == 0 || std::isnormal(value)) << test.name << ": " << value;
      }
    }
    const float value = 1e-38f;
    volatile float half = value;
    EXPECT_NE(half * 0.1f, 0) << "the caller's arithmetic is as before";
  }
}

// The op on padded rows must have the same results as Apply on dense spans.
TEST(ApplyKernelTest, UpdatesPaddedRowsInPlace) {
  constexpr int64_t kRows = 5, kCols = 33, kStride = 40;
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.name);
    State<float> dense(test.optimizer, kRows * kCols);
    const kernels::Operand padded{DType::kFloat32, Shape({kRows, kCols}), kStride};
    const size_t slots = dense.slots.size();
    kernels::KernelRequest request{"ApplyOptimizer", ToAttributes(test.optimizer), {}, {}};
    request.inputs = {kernels::Operand::Dense(DType::kInt64, Shape()),
                      kernels::Operand::Dense(DType::kFloat32, padded.shape)};
    request.inputs.resize(3 + slots, padded);
    request.outputs.resize(1 + slots, padded);
    auto kernel = CpuKernels().Prepare(request);
    ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();

    std::vector<std::vector<float>> memory(1 + slots, std::vector<float>(kRows * kStride, -7));
    auto at = [](int64_t i) { return static_cast<size_t>(i / kCols * kStride + i % kCols); };
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      const auto d = static_cast<size_t>(i);
      memory[0][at(i)] = dense.variable[d];
      for (size_t s = 0; s < slots; ++s) memory[s + 1][at(i)] = dense.slots[s][d];
      dense.gradient[d] = static_cast<float>(Gradient(d, 3));
    }
    const int64_t step = 4;
    std::vector<const void*> inputs = {&step, dense.gradient.data()};
    std::vector<void*> outputs;
    for (auto& buffer : memory) {
      inputs.push_back(buffer.data());
      outputs.push_back(buffer.data());
    }
    kernels::Stream stream;
    (*kernel)->Run(inputs.data(), outputs.data(), nullptr, stream);
    std::vector<std::span<float>> spans(dense.slots.begin(), dense.slots.end());
    Apply(test.optimizer, step, std::span<float>(dense.variable),
          std::span<const float>(dense.gradient), std::span<const std::span<float>>(spans), stream);
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      ASSERT_NEAR(memory[0][at(i)], dense.variable[static_cast<size_t>(i)], 1e-7) << i;
      for (size_t s = 0; s < slots; ++s) {
        ASSERT_NEAR(memory[s + 1][at(i)], dense.slots[s][static_cast<size_t>(i)], 1e-7);
      }
    }
    EXPECT_EQ(memory[0][kCols], -7) << "padding";
  }
}

TEST(ApplyKernelTest, RefusesOperandsThatDoNotFit) {
  const kernels::Operand step = kernels::Operand::Dense(DType::kInt64, Shape());
  const kernels::Operand w = kernels::Operand::Dense(DType::kFloat32, Shape({3}));
  const kernels::Operand other = kernels::Operand::Dense(DType::kFloat32, Shape({4}));
  const Attributes adam = ToAttributes(Optimizer::Default(Kind::kAdam));
  auto prepare = [&](const Attributes& attributes, std::vector<kernels::Operand> inputs,
                     std::vector<kernels::Operand> outputs) {
    return CpuKernels().Prepare({"ApplyOptimizer", attributes, inputs, outputs}).status();
  };
  EXPECT_TRUE(prepare(adam, {step, w, w, w, w}, {w, w, w}).ok());
  EXPECT_FALSE(prepare(adam, {step, w, w, w}, {w, w}).ok());
  EXPECT_FALSE(prepare(adam, {step, other, w, w, w}, {w, w, w}).ok());
  EXPECT_FALSE(prepare(adam, {w, w, w, w, w}, {w, w, w}).ok());
  EXPECT_FALSE(prepare({{"kind", std::string("Muon")}}, {step, w, w}, {w}).ok());
}

TEST(OptimizerTest, AttributesHoldTheWholeOptimizer) {
  for (const Case& test : Cases()) {
    auto back = FromAttributes(ToAttributes(test.optimizer));
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(*back, test.optimizer) << test.name;
  }
}

TEST(OptimizerTest, JsonHoldsTheWholeOptimizer) {
  for (const Case& test : Cases()) {
    Optimizer optimizer = test.optimizer;
    optimizer.exclude_from_weight_decay = {"bias", "gamma"};
    const Json json = ToJson(optimizer);
    auto back = ParseOptimizer(JsonField(json));
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(*back, optimizer) << test.name;
  }
}

TEST(OptimizerTest, ExcludesVariablesFromWeightDecay) {
  Optimizer adamw = Optimizer::Default(Kind::kAdamW);
  adamw.exclude_from_weight_decay = {"bias", "norm/"};
  EXPECT_EQ(ForVariable(adamw, "dense/kernel").weight_decay, 0.004);
  EXPECT_EQ(ForVariable(adamw, "dense/bias").weight_decay, 0);
  EXPECT_EQ(ForVariable(adamw, "norm/gamma").weight_decay, 0);
  // As in Keras, a regular expression may match the last component of the name, such as "bias".
  adamw.exclude_from_weight_decay = {"^(bias|b.ta)$"};
  EXPECT_EQ(ForVariable(adamw, "dense/bias").weight_decay, 0);
  EXPECT_EQ(ForVariable(adamw, "norm/beta").weight_decay, 0);
  EXPECT_EQ(ForVariable(adamw, "dense/bias_2").weight_decay, 0.004);
  adamw.exclude_from_weight_decay = {"bias("};
  EXPECT_EQ(
      Message(Validate(adamw)),
      "optimizer: exclude_from_weight_decay: bias( is no regular expression: missing ): bias(");
  adamw.exclude_from_weight_decay = {"bias"};
  const auto read = FromAttributes(ToAttributes(ForVariable(adamw, "dense/bias")));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->weight_decay, 0) << "not the default";
}

TEST(OptimizerTest, CountsItsSlots) {
  for (const Case& test : Cases()) {
    EXPECT_EQ(static_cast<int>(Slots(test.optimizer).size()), SlotCount(test.optimizer))
        << test.name;
    EXPECT_LE(SlotCount(test.optimizer), kMaxSlots);
  }
  Optimizer most = Make(Kind::kRmsprop, 1, [](Optimizer& o) {
    o.centered = o.use_ema = true;
    o.momentum = 0.9;
    o.gradient_accumulation_steps = 2;
  });
  EXPECT_EQ(SlotCount(most), kMaxSlots);
  EXPECT_EQ(Slots(most)[static_cast<size_t>(AverageSlot(most))].name, "average");
}

TEST(OptimizerTest, SlotsHaveTensorFlowsNamesWhereTheyMeanTheSame) {
  auto suffixes = [](const Optimizer& optimizer) {
    std::string text;
    for (const Slot& slot : Slots(optimizer)) text += slot.name + ":" + slot.suffix + " ";
    return text;
  };
  EXPECT_EQ(suffixes(Optimizer::Default(Kind::kSgd)), "");
  EXPECT_EQ(suffixes(Make(Kind::kSgd, 1, [](Optimizer& o) { o.momentum = 0.9; })),
            "momentum:momentum ");
  EXPECT_EQ(suffixes(Optimizer::Default(Kind::kAdagrad)), "accumulator:Adagrad ");
  EXPECT_EQ(suffixes(Optimizer::Default(Kind::kAdam)), "momentum:Adam velocity:Adam_1 ");
  EXPECT_EQ(suffixes(Optimizer::Default(Kind::kRmsprop)), "velocity:RMSProp ");
  EXPECT_EQ(suffixes(Make(Kind::kRmsprop, 1,
                          [](Optimizer& o) {
                            o.centered = true;
                            o.momentum = 0.9;
                          })),
            "velocity:RMSProp average_gradient:RMSProp_1 momentum:RMSProp_2 ");
  EXPECT_EQ(Slots(Optimizer::Default(Kind::kAdagrad))[0].initial_value, 0.1);
}

TEST(OptimizerTest, ReadsNamesInAnyCase) {
  for (int i = 0; i < kKindCount; ++i) {
    const Kind kind = static_cast<Kind>(i);
    EXPECT_EQ(ParseKind(Name(kind)).value(), kind);
  }
  EXPECT_EQ(ParseKind("adam").value(), Kind::kAdam);
  EXPECT_EQ(Message(ParseKind("Adm").status()),
            "there is no optimizer \"Adm\"; did you mean \"Adam\"?");
}

TEST(OptimizerTest, RefusesHyperParametersOutOfRange) {
  auto message = [](Kind kind, const std::function<void(Optimizer&)>& change) {
    return std::string(Message(Validate(Make(kind, 0.1, change))));
  };
  EXPECT_EQ(message(Kind::kSgd, [](Optimizer& o) { o.learning_rate = -1; }),
            "optimizer: learning_rate is -1: it must be a finite number, 0 or more");
  EXPECT_NE(message(Kind::kSgd, [](Optimizer& o) { o.learning_rate = NAN; }), "");
  EXPECT_EQ(message(Kind::kSgd, [](Optimizer& o) { o.momentum = 1; }),
            "optimizer: momentum is 1: it must be at least 0 and below 1");
  EXPECT_NE(message(Kind::kSgd, [](Optimizer& o) { o.nesterov = true; }), "");
  EXPECT_NE(message(Kind::kAdam, [](Optimizer& o) { o.beta_1 = 1; }), "");
  EXPECT_NE(message(Kind::kAdam, [](Optimizer& o) { o.beta_2 = -0.1; }), "");
  EXPECT_NE(message(Kind::kAdam, [](Optimizer& o) { o.epsilon = -1; }), "");
  EXPECT_NE(message(Kind::kAdagrad, [](Optimizer& o) { o.initial_accumulator_value = -1; }), "");
  EXPECT_NE(message(Kind::kRmsprop, [](Optimizer& o) { o.rho = 2; }), "");
  EXPECT_NE(message(Kind::kSgd, [](Optimizer& o) { o.weight_decay = -1; }), "");
  EXPECT_NE(message(Kind::kSgd, [](Optimizer& o) { o.ema_momentum = 1.1; }), "");
  EXPECT_NE(message(Kind::kSgd, [](Optimizer& o) { o.gradient_accumulation_steps = 1; }), "");
  EXPECT_NE(message(Kind::kFtrl, [](Optimizer& o) { o.learning_rate = 0; }), "");
  EXPECT_NE(message(Kind::kFtrl, [](Optimizer& o) { o.learning_rate_power = 0.5; }), "");
  // Validate does not check fields that the kind does not use.
  EXPECT_EQ(message(Kind::kAdagrad, [](Optimizer& o) { o.momentum = 3; }), "");
}

}  // namespace
}  // namespace tfjob::optimizer
