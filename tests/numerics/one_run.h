// Runs a model on one batch, for tests that compare layers with plain loops.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {

using Values = std::vector<float>;
inline constexpr int64_t kBatch = 6;

// Runs a model that consists of the given layers on one batch. The variables keep their initial
// values.
class OneRun {
 public:
  OneRun(const Model& model, Mode mode, std::vector<Values> inputs, int64_t step = 0,
         std::vector<Metric> metrics = {}) {
    BuildOptions options{.mode = mode, .batch_size = kBatch};
    for (const Values& input : inputs)
      options.features.push_back({DType::kFloat32, {static_cast<int64_t>(input.size()) / kBatch}});
    const auto outputs = OutputTypes(model, options.features);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    options.objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                           .metrics = std::move(metrics),
                           .labels = {DType::kFloat32, (*outputs)[0].shape}}};
    FindMasks(model, options);
    StatusOr<BuiltGraph> built = Build(model, options);
    EXPECT_TRUE(built.ok()) << built.status();
    for (const VariableSpec& spec : built->variables) {
      auto variable = store_.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable);
      EXPECT_TRUE(
          (*variable)
              ->FromTensor(InitialValue(spec.initializer, spec.dtype, spec.shape, 1, spec.name))
              .ok());
    }
    auto program = exec::Compile(built->graph, store_, TestDevice());
    EXPECT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    const Values labels(static_cast<size_t>(kBatch * (*outputs)[0].shape.num_elements()));
    const int64_t seed = 1;
    std::vector<exec::Feed> feeds;
    for (const Values& input : inputs)
      feeds.push_back(exec::Feed::Of(std::span<const float>(input)));
    if (mode != Mode::kPredict) feeds.push_back(exec::Feed::Of(std::span<const float>(labels)));
    if (mode == Mode::kTrain)
      feeds.insert(feeds.end(), {exec::Feed::Of(step), exec::Feed::Of(seed)});
    EXPECT_EQ(program_->Run(feeds), OkStatus());
  }

  template <typename T = float>
  std::vector<T> Get(const std::string& fetch) const {
    const auto values = program_->Fetch<T>(program_->FindFetch(fetch));
    return {values.begin(), values.end()};
  }

 private:
  variables::VariableStore store_ = TestStore();
  std::unique_ptr<exec::Program> program_;
};

inline Model Chain(LayerConfig config) {
  return Sequential("m", {{.name = "layer", .config = std::move(config)}});
}

}  // namespace tfjob::model
