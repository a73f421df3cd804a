// Compares the kernels for optimizers with the kernels for CPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/optimizer/part.h"

namespace tfjob::kernels::cuda {
namespace {

using optimizer::Kind;
using optimizer::Optimizer;

constexpr double kTolerance = 1e-5;

int64_t Draw(PhiloxStream& random, std::initializer_list<int64_t> sizes) {
  return sizes.begin()[random.Below(static_cast<uint32_t>(sizes.size()))];
}

void Add(std::vector<Optimizer>& all, Kind kind, const std::function<void(Optimizer&)>& change) {
  Optimizer o = Optimizer::Default(kind);
  // The rate is large, so that the update matters. The epsilon is large, because the random slots
  // are not those of a real run.
  o.learning_rate = 0.1;
  o.epsilon = 1e-2;
  change(o);
  all.push_back(o);
}

// Returns every kind of optimizer with its defaults, and some of them with each of their options.
std::vector<Optimizer> AllOptimizers() {
  std::vector<Optimizer> all;
  for (int kind = 0; kind < optimizer::kKindCount; ++kind)
    Add(all, static_cast<Kind>(kind), [](Optimizer&) {});
  Add(all, Kind::kSgd, [](Optimizer& o) { o.momentum = 0.9; });
  Add(all, Kind::kSgd, [](Optimizer& o) { o.momentum = 0.9, o.nesterov = true; });
  Add(all, Kind::kAdam, [](Optimizer& o) { o.amsgrad = true; });
  Add(all, Kind::kRmsprop, [](Optimizer& o) { o.momentum = 0.5; });
  // The epsilon is large, because the random mean may be larger than the root of the mean square.
  Add(all, Kind::kRmsprop, [](Optimizer& o) { o.centered = true, o.epsilon = 10; });
  Add(all, Kind::kRmsprop, [](Optimizer& o) {
    o.centered = true;
    o.epsilon = 10;
    o.momentum = 0.5;
  });
  Add(all, Kind::kFtrl, [](Optimizer& o) {
    o.learning_rate_power = -0.7;
    o.l1_regularization_strength = 0.01;
    o.l2_regularization_strength = 0.02;
    o.l2_shrinkage_regularization_strength = 0.03;
    o.beta = 0.1;
  });
  for (const Kind kind : {Kind::kSgd, Kind::kAdam, Kind::kAdagrad}) {
    Add(all, kind, [](Optimizer& o) { o.weight_decay = 0.01; });
    Add(all, kind, [](Optimizer& o) { o.weight_decay = 0.01, o.momentum = 0.8, o.lazy = true; });
    Add(all, kind, [](Optimizer& o) { o.use_ema = true, o.ema_momentum = 0.8; });
    Add(all, kind, [](Optimizer& o) { o.use_ema = true, o.ema_overwrite_frequency = 2; });
    Add(all, kind, [](Optimizer& o) { o.gradient_accumulation_steps = 3; });
  }
  return all;
}

// Adds slots. Their values are positive, because some slots are means of squares.
void AddSlots(const Optimizer& o, const Shape& shape, std::vector<RandomOperand>& inputs,
              std::vector<RandomOperand>& outputs) {
  for (int slot = 0; slot < SlotCount(o); ++slot) {
    inputs.push_back({shape, DType::kFloat32, 0.1, 3});
    outputs.push_back(inputs.back());
  }
}

TEST(CudaOptimizers, UpdateAVariable) {
  for (const Optimizer& o : AllOptimizers()) {
    SCOPED_TRACE(std::string(Name(o.kind)));
    for (uint64_t seed = 0; seed < 6; ++seed) {
      PhiloxStream random(seed);
      const Shape shape = seed % 2 == 0 ? Shape({Draw(random, {0, 1, 5, 1003, 4097})})
                                        : Shape({Draw(random, {1, 7}), Draw(random, {1, 33})});
      const RandomOperand step{Shape({}), DType::kInt64, 0, 5};
      std::vector<RandomOperand> inputs = {step, {shape}, {shape}}, outputs = {{shape}};
      AddSlots(o, shape, inputs, outputs);
      Compare({"ApplyOptimizer", ToAttributes(o), inputs, outputs, kTolerance}, seed);
    }
  }
}

// An update consists of two parts if the accumulated gradient is clipped.
TEST(CudaOptimizers, UpdateInParts) {
  Optimizer o = Optimizer::Default(Kind::kAdam);
  o.gradient_accumulation_steps = 2;
  o.use_ema = true;
  for (const optimizer::Part part : {optimizer::Part::kAccumulate, optimizer::Part::kUpdate}) {
    Attributes attributes = ToAttributes(o);
    attributes.Set(optimizer::kPart, static_cast<int64_t>(part));
    for (const double number : {0, 1, 6, 7}) {
      const RandomOperand step{Shape({}), DType::kInt64, number, number};
      const Shape shape({300});
      std::vector<RandomOperand> inputs = {step, {shape}, {shape}}, outputs = {{shape}};
      AddSlots(o, shape, inputs, outputs);
      Compare({"ApplyOptimizer", attributes, inputs, outputs, kTolerance}, 1);
    }
  }
}

TEST(CudaOptimizers, RefuseOptionsThatTheyLack) {
  const KernelTable table = MakeTable(EmulatedGpu(0));
  const Operand step = Operand::Dense(DType::kInt64, Shape({}));
  const Operand w = Operand::Dense(DType::kFloat32, Shape({4, 3}));
  const auto message = [&](const std::function<void(Optimizer&)>& change) {
    Optimizer optimizer;
    change(optimizer);
    const std::string all = std::string(Message(
        table.Prepare({"ApplyOptimizer", ToAttributes(optimizer), {step, w, w}, {w}}).status()));
    return all.substr(all.rfind(": ") + 2);
  };
  EXPECT_EQ(message([](Optimizer& o) {
              o.schedule.decay = optimizer::Decay::kPiecewiseConstant;
              for (int i = 0; i < 65; ++i) o.schedule.boundaries.push_back(i);
              o.schedule.values.assign(66, 0.1);
            }),
            "a learning-rate schedule of more than 64 boundaries");
  Attributes attributes = ToAttributes(Optimizer());
  attributes.Set("constraint", std::string("{}"));
  EXPECT_THAT(std::string(Message(
                  table.Prepare({"ApplyOptimizer", attributes, {step, w, w}, {w}}).status())),
              testing::HasSubstr("no CUDA kernel for SGD with a constraint"));
}

// The rows that have a gradient are distinct and ascending, like those that
// DeduplicateIndexedSlices returns.
TEST(CudaOptimizers, UpdateRows) {
  for (const Optimizer& o : AllOptimizers()) {
    SCOPED_TRACE(std::string(Name(o.kind)));
    for (uint64_t seed = 0; seed < 6; ++seed) {
      PhiloxStream random(seed);
      const int64_t rows = Draw(random, {1, 40, 300}), cols = Draw(random, {1, 5, 33});
      const int64_t count = std::min<int64_t>(rows, Draw(random, {0, 1, 20, 40}));
      const RandomOperand step{Shape({}), DType::kInt64, 0, 100};
      const RandomOperand numbers{.shape = Shape({count}),
                                  .dtype = DType::kInt64,
                                  .high = static_cast<double>(rows),
                                  .ascending = true};
      const RandomOperand variable{Shape({rows, cols})};
      std::vector<RandomOperand> inputs = {step, numbers, {Shape({count, cols})}, variable};
      std::vector<RandomOperand> outputs = {variable};
      AddSlots(o, variable.shape, inputs, outputs);
      Compare({"ApplyOptimizerRows", ToAttributes(o), inputs, outputs, kTolerance}, seed);
    }
  }
}

TEST(CudaOptimizers, FollowLearningRateSchedules) {
  using optimizer::Decay;
  std::vector<optimizer::Schedule> schedules(10);
  for (optimizer::Schedule& s : schedules) {
    s.decay_steps = 10;
    s.decay_rate = 0.7;
    s.power = 2;
    s.alpha = 0.1;
    s.m_mul = 0.8;
    s.end_learning_rate = 0.001;
  }
  schedules[0].decay = schedules[1].decay = Decay::kExponential;
  schedules[1].staircase = true;
  schedules[2].decay = Decay::kInverseTime;
  schedules[3].decay = schedules[4].decay = Decay::kPolynomial;
  schedules[4].cycle = true;
  schedules[5].decay = schedules[6].decay = Decay::kCosine;
  schedules[6].warmup_target = 0.5;
  schedules[6].warmup_steps = 7;
  schedules[7].decay = schedules[8].decay = Decay::kCosineRestarts;
  schedules[8].t_mul = 1;
  schedules[9].decay = Decay::kPiecewiseConstant;
  schedules[9].boundaries = {3, 9, 20};
  schedules[9].values = {0.4, 0.3, 0.2, 0.1};
  for (const optimizer::Schedule& schedule : schedules) {
    for (const int64_t step : {0, 3, 6, 7, 9, 10, 15, 25, 30, 70, 71, 1000}) {
      Optimizer o;
      o.learning_rate = 0.3;
      o.schedule = schedule;
      const RandomOperand number{Shape({}), DType::kInt64, static_cast<double>(step),
                                 static_cast<double>(step)};
      const RandomOperand variable{Shape({5})};
      Compare({"ApplyOptimizer", ToAttributes(o), {number, variable, variable}, {variable}}, 1);
      const RandomOperand table{Shape({3, 2})}, row{Shape({1, 2})};
      const RandomOperand first{Shape({1}), DType::kInt64, 0, 0};
      Compare({"ApplyOptimizerRows", ToAttributes(o), {number, first, row, table}, {table}}, 1);
    }
  }
}

}  // namespace
}  // namespace tfjob::kernels::cuda
