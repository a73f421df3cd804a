// Trains the example models for a few steps on generated batches, for tests that compare devices or
// programs.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "tests/numerics/example_model.h"

namespace tfjob::model {

inline constexpr int kSteps = 3;

struct Example {
  const char* name;
  int64_t batch = 0;
  LossKind loss = LossKind::kSparseCategoricalCrossentropy;
  bool logits = true;  // what the model returns, if the loss is sparse
};

// Returns an optimizer whose learning rate changes with the step. If a gradient is zero except for
// rounding errors, like that of the bias of an attention's keys, Adam divides it by about epsilon,
// so epsilon must not be small.
inline optimizer::Optimizer MakeOptimizer() {
  auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  adam.learning_rate = 0.003;
  adam.epsilon = 1e-3;
  adam.schedule.decay = optimizer::Decay::kCosine;
  adam.schedule.decay_steps = 5;
  return adam;
}

inline BuiltGraph BuildExample(const Example& example, const Model& model) {
  BuildOptions options{.batch_size = example.batch, .optimizer = MakeOptimizer()};
  for (const auto& stated : StatedInputs(model)) options.features.push_back(*stated);
  const auto outputs = OutputTypes(model, options.features);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<int64_t> places = (*outputs)[0].shape.dims();
  places.pop_back();  // the classes
  const bool sparse = example.loss == LossKind::kSparseCategoricalCrossentropy;
  options.objectives = {{.loss = {.kind = example.loss, .from_logits = sparse && example.logits},
                         .metrics = {Metric::kAccuracy},
                         .labels = {sparse ? DType::kInt64 : DType::kFloat32, Shape(places)}}};
  FindMasks(model, options);
  auto built = Build(model, options);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

// Returns values for a feed: small integers, which are valid ids and classes, or pixels below 1.
inline Tensor FeedOf(const exec::Port& port, int step) {
  Tensor feed(port.type.dtype, port.type.shape);
  PhiloxStream random(PhiloxKey(static_cast<uint64_t>(step), port.name));
  const uint32_t bound = port.name == "segments" || port.name == kLabels ? 2 : 24;
  const auto fill = [&](auto values) {
    for (auto& value : values)
      value = static_cast<std::remove_reference_t<decltype(value)>>(random.Below(bound));
  };
  if (port.type.dtype == DType::kInt32) fill(feed.data<int32_t>());
  if (port.type.dtype == DType::kInt64) fill(feed.data<int64_t>());
  if (port.type.dtype == DType::kFloat32) fill(feed.data<float>());
  if (port.type.dtype == DType::kFloat32 && port.type.shape.rank() > 2) {
    for (float& pixel : feed.data<float>()) pixel /= static_cast<float>(bound);
  }
  if (port.name == kStep) feed.data<int64_t>()[0] = step;
  if (port.name == kLossScale) feed.data<float>()[0] = 1024;
  return feed;
}

struct Trained {
  std::vector<float> losses, hits;
  std::map<std::string, std::vector<float>> changes;  // of the variables, in all steps
  size_t arena_bytes = 0;
};

inline Trained Train(const BuiltGraph& built, const exec::Device& device) {
  Trained trained;
  variables::VariableStore store(device.row_stride, device.runtime);
  for (const VariableSpec& spec : built.variables) {
    auto variable = store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable);
    const Tensor initial = InitialValue(spec.initializer, spec.dtype, spec.shape, 1, spec.name);
    EXPECT_EQ((*variable)->FromTensor(initial), OkStatus());
  }
  const auto program = exec::Compile(built.graph, store, device);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return trained;
  trained.arena_bytes = (*program)->arena_bytes();
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Tensor> values;
    std::vector<exec::Feed> feeds;
    for (const exec::Port& port : (*program)->feeds()) values.push_back(FeedOf(port, step));
    for (const Tensor& value : values) feeds.push_back(exec::Feed::Of(value));
    EXPECT_EQ((*program)->Run(feeds), OkStatus());
    trained.losses.push_back((*program)->Fetch<float>((*program)->FindFetch(kLossSum))[0]);
    trained.hits.push_back((*program)->Fetch<float>((*program)->FindFetch("accuracy_sum"))[0]);
  }
  for (const VariableSpec& spec : built.variables) {
    const Tensor value = store.Find(spec.name)->ToTensor();
    if (value.dtype() != DType::kFloat32) continue;
    const Tensor initial = InitialValue(spec.initializer, spec.dtype, spec.shape, 1, spec.name);
    std::vector<float>& changes = trained.changes[spec.name];
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      const auto at = static_cast<size_t>(i);
      changes.push_back(value.data<float>()[at] - initial.data<float>()[at]);
    }
  }
  return trained;
}

}  // namespace tfjob::model
