#include "runtime/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "runtime/optimizer/apply_kernel.h"

namespace tfjob::optimizer {
namespace {

// Performs Keras 3's update of one element, in double, and returns the new w. `state` contains the
// slots' values in the order of Slots().
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

std::vector<Case> Cases() {
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
        ASSERT_NEAR(state.slots[s][i], element[s], tolerance) << "slot " << s << ", step " << step;
      }
    }
  }
}

TEST(ApplyTest, FollowsKerasForSeveralSteps) {
  ThreadPool pool("apply", 2);
  for (const Case& test : Cases()) {
    for (size_t count : {0u, 1u, 13u, 50001u}) {
      CheckSteps<float>(test, count, nullptr, 1e-6);
      CheckSteps<double>(test, count, nullptr, 1e-14);
    }
    CheckSteps<float>(test, 70001, &pool, 1e-6);
  }
}

// If the gradient stays 0, the moments must decay to 0. They must not stay subnormal, because that
// would be slow.
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

// The op on padded rows must give the same values as Apply on dense spans.
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
  EXPECT_FALSE(prepare({{"kind", std::string("Lion")}}, {step, w, w}, {w}).ok());
}

TEST(OptimizerTest, AttributesHoldTheWholeOptimizer) {
  for (const Case& test : Cases()) {
    auto back = FromAttributes(ToAttributes(test.optimizer));
    ASSERT_TRUE(back.ok()) << back.status().ToString();
    EXPECT_EQ(*back, test.optimizer) << test.name;
  }
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
  for (Kind kind : {Kind::kSgd, Kind::kAdagrad, Kind::kAdam, Kind::kRmsprop}) {
    EXPECT_EQ(ParseKind(Name(kind)).value(), kind);
  }
  EXPECT_EQ(ParseKind("adam").value(), Kind::kAdam);
  EXPECT_EQ(Message(ParseKind("Lion").status()),
            "there is no optimizer \"Lion\": use SGD, Adagrad, Adam or RMSprop");
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
  // Fields that a kind does not use are not checked.
  EXPECT_EQ(message(Kind::kAdagrad, [](Optimizer& o) { o.momentum = 3; }), "");
}

}  // namespace
}  // namespace tfjob::optimizer
