#include "runtime/kernels/cuda/checks/optimizer_cases.h"

#include <algorithm>
#include <functional>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {
namespace {

using optimizer::Kind;
using optimizer::Optimizer;

void AddOptimizer(std::vector<Optimizer>& all, Kind kind,
                  const std::function<void(Optimizer&)>& change) {
  Optimizer o = Optimizer::Default(kind);
  // The rate is large, so that the update has a visible effect. The epsilon is large, because
  // random slots do not fit together like those of a real run.
  o.learning_rate = 0.1;
  o.epsilon = 1e-2;
  change(o);
  all.push_back(o);
}

// Gradients may have half types.
DType DrawGradientType(PhiloxStream& random) {
  const DType types[] = {DType::kFloat32, DType::kFloat32, DType::kBFloat16, DType::kFloat16};
  return types[random.Below(4)];
}

}  // namespace

std::vector<Optimizer> OptimizersToCompare() {
  std::vector<Optimizer> all;
  for (int kind = 0; kind < optimizer::kKindCount; ++kind)
    AddOptimizer(all, static_cast<Kind>(kind), [](Optimizer&) {});
  AddOptimizer(all, Kind::kSgd, [](Optimizer& o) { o.momentum = 0.9; });
  AddOptimizer(all, Kind::kSgd, [](Optimizer& o) { o.momentum = 0.9, o.nesterov = true; });
  AddOptimizer(all, Kind::kAdam, [](Optimizer& o) { o.amsgrad = true; });
  AddOptimizer(all, Kind::kRmsprop, [](Optimizer& o) { o.momentum = 0.5; });
  // The epsilon is large, because the random mean may exceed the root of the random mean square.
  AddOptimizer(all, Kind::kRmsprop, [](Optimizer& o) { o.centered = true, o.epsilon = 10; });
  AddOptimizer(all, Kind::kRmsprop, [](Optimizer& o) {
    o.centered = true;
    o.epsilon = 10;
    o.momentum = 0.5;
  });
  AddOptimizer(all, Kind::kFtrl, [](Optimizer& o) {
    o.learning_rate_power = -0.7;
    o.l1_regularization_strength = 0.01;
    o.l2_regularization_strength = 0.02;
    o.l2_shrinkage_regularization_strength = 0.03;
    o.beta = 0.1;
  });
  for (const Kind kind : {Kind::kSgd, Kind::kAdam, Kind::kAdagrad}) {
    AddOptimizer(all, kind, [](Optimizer& o) { o.weight_decay = 0.01; });
    AddOptimizer(all, kind,
                 [](Optimizer& o) { o.weight_decay = 0.01, o.momentum = 0.8, o.lazy = true; });
    AddOptimizer(all, kind, [](Optimizer& o) { o.use_ema = true, o.ema_momentum = 0.8; });
    AddOptimizer(all, kind, [](Optimizer& o) { o.use_ema = true, o.ema_overwrite_frequency = 2; });
    AddOptimizer(all, kind, [](Optimizer& o) { o.gradient_accumulation_steps = 3; });
  }
  return all;
}

void AddSlots(const Optimizer& o, const Shape& shape, std::vector<RandomOperand>& inputs,
              std::vector<RandomOperand>& outputs) {
  for (int slot = 0; slot < SlotCount(o); ++slot) {
    inputs.push_back({shape, DType::kFloat32, 0.1, 3});
    outputs.push_back(inputs.back());
  }
}

std::vector<Comparison> OptimizerCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const Optimizer& o : OptimizersToCompare()) {
    PhiloxStream random(seed);
    const Shape shape = seed % 2 == 0 ? Shape({Draw(random, {0, 1, 5, 1003, 4097})})
                                      : Shape({Draw(random, {1, 7}), Draw(random, {1, 33})});
    const RandomOperand step{Shape({}), DType::kInt64, 0, 5};
    std::vector<RandomOperand> inputs = {step, {shape, DrawGradientType(random)}, {shape}};
    std::vector<RandomOperand> outputs = {{shape}};
    AddSlots(o, shape, inputs, outputs);
    all.push_back({"ApplyOptimizer", ToAttributes(o), inputs, outputs, kUpdateTolerance});
  }
  return all;
}

// The fast kernels update up to 32 variables per launch. The counts include more than that.
std::vector<Comparison> OptimizerGroupCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const Optimizer& o : OptimizersToCompare()) {
    PhiloxStream random(PhiloxKey(seed, "groups"));
    const int64_t count = Draw(random, {1, 2, 3, 32, 33, 35});
    const RandomOperand step{Shape({}), DType::kInt64, 0, 5};
    std::vector<RandomOperand> inputs, outputs, gradients;
    for (int64_t i = 0; i < count; ++i) {
      const RandomOperand variable{Shape({Draw(random, {0, 1, 5, 130})})};
      gradients.push_back({variable.shape, DrawGradientType(random)});
      inputs.push_back(variable);
      outputs.push_back(variable);
      AddSlots(o, variable.shape, inputs, outputs);
    }
    inputs.push_back(step);
    inputs.insert(inputs.end(), gradients.begin(), gradients.end());
    all.push_back({"ApplyOptimizers", ToAttributes(o), inputs, outputs, kUpdateTolerance});
  }
  return all;
}

// The rows that have a gradient are distinct and ascending, like those that
// DeduplicateIndexedSlices returns.
std::vector<Comparison> OptimizerRowsCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const Optimizer& o : OptimizersToCompare()) {
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
    all.push_back({"ApplyOptimizerRows", ToAttributes(o), inputs, outputs, kUpdateTolerance});
  }
  return all;
}

}  // namespace tfjob::kernels::cuda
