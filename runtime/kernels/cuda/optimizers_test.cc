// Compares the kernels for optimizers with the kernels for CPUs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/optimizer_cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/optimizer/part.h"

namespace tfjob::kernels::cuda {
namespace {

using optimizer::Kind;
using optimizer::Optimizer;

TEST(CudaOptimizers, UpdateAVariable) {
  for (uint64_t seed = 0; seed < 6; ++seed) CompareAll(OptimizerCases(seed), seed);
}

TEST(CudaOptimizers, UpdateManyVariables) {
  for (uint64_t seed = 0; seed < 6; ++seed) CompareAll(OptimizerGroupCases(seed), seed);
}

// If accumulated gradients are clipped, an update consists of two parts.
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
      Compare({"ApplyOptimizer", attributes, inputs, outputs, kUpdateTolerance}, 1);
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

TEST(CudaOptimizers, UpdateRows) {
  for (uint64_t seed = 0; seed < 6; ++seed) CompareAll(OptimizerRowsCases(seed), seed);
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
