// Provides models with a table (an Embedding layer), their options and their batches, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

inline constexpr int64_t kRows = 40, kLength = 3, kBatch = 8;

// Returns a model with a table of `table_rows` rows, for batches of kBatch examples. `rows` is
// BuildOptions::gradient_rows.
inline ModelDefinition Pooled(const optimizer::Optimizer& optimizer, bool rows,
                              const std::string& constraint = "null", bool frozen = false,
                              int64_t table_rows = kRows) {
  ModelDefinition definition;
  Json layers = *ParseJson(StrCat(R"([{"Embedding": {"input_dim": )", table_rows,
                                  R"(, "output_dim": 5, "embeddings_constraint": )", constraint,
                                  R"(}}, "GlobalAveragePooling1D",
          {"Dense": {"units": 1, "kernel_constraint": )",
                                  constraint == "null" ? constraint : R"("non_neg")", "}}]"),
                           "layers");
  if (frozen) layers[0]["Embedding"]["trainable"] = false;
  definition.model = *model::ReadLayers(JsonField(layers, "model.layers"));
  definition.build.batch_size = kBatch;
  definition.build.features = model::Features({kLength});
  definition.build.objectives = {
      {.loss = {.kind = model::LossKind::kMeanSquaredError}, .labels = {DType::kFloat32, {}}}};
  definition.build.gradient_rows = rows;
  definition.state.optimizer = optimizer;
  definition.seed = 5;
  EXPECT_TRUE(DefineVariables(definition).ok());
  return definition;
}

inline StrategyOptions TableOptions(const ModelDefinition& definition) {
  return {.definition = definition,
          .device = exec::CpuDevice(),
          .provide_state = [definition](const state::Snapshot*) -> StatusOr<state::Snapshot> {
            return InitialState(definition);
          }};
}

// Returns a batch of lists of ids, many of which occur several times. Each label follows from its
// ids.
inline data::Batch TableBatch(int64_t step, int64_t table_rows = kRows) {
  Tensor ids(DType::kFloat32, {kBatch, kLength}), labels(DType::kFloat32, {kBatch});
  for (int64_t i = 0; i < kBatch * kLength; ++i) {
    const int64_t id = (step * 7 + i * i) % table_rows;
    ids.data<float>()[static_cast<size_t>(i)] = static_cast<float>(id);
    labels.data<float>()[static_cast<size_t>(i / kLength)] += std::sin(static_cast<float>(id));
  }
  return {.tensors = {{"features", ids}, {"labels", labels}}, .position = {}};
}

// Returns `size` examples of a batch, starting with example `first`.
inline data::Batch PartOf(const data::Batch& batch, int64_t first, int64_t size) {
  Tensor ids(DType::kFloat32, {size, kLength}), labels(DType::kFloat32, {size});
  const auto cut = [&](const Tensor& from, Tensor& to, int64_t width) {
    const auto values = from.data<float>().subspan(static_cast<size_t>(first * width));
    std::copy_n(values.begin(), size * width, to.data<float>().begin());
  };
  cut(batch.tensors[0].value, ids, kLength);
  cut(batch.tensors[1].value, labels, 1);
  return {.tensors = {{"features", ids}, {"labels", labels}}, .position = {}};
}

inline std::vector<optimizer::Optimizer> Optimizers() {
  std::vector<optimizer::Optimizer> all;
  for (optimizer::Kind kind : {optimizer::Kind::kSgd, optimizer::Kind::kAdagrad,
                               optimizer::Kind::kAdam, optimizer::Kind::kRmsprop}) {
    all.push_back(optimizer::Optimizer::Default(kind));
    all.back().learning_rate = 0.05;
  }
  all.push_back(all[0]);
  all.back().momentum = 0.9;
  return all;
}

inline ModelDefinition WithBatchSize(ModelDefinition definition, int64_t batch_size) {
  definition.build.batch_size = batch_size;
  return definition;
}

// Returns models whose options may change rows that the batch does not read (such as weight decay),
// or need several rows at once (such as a global norm).
inline std::vector<ModelDefinition> SpecialOptions() {
  optimizer::Optimizer adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  std::vector<ModelDefinition> all = {Pooled(adam, true, "null", /*frozen=*/true)};
  optimizer::Optimizer lazy = adam;
  lazy.lazy = true;
  all.push_back(Pooled(lazy, true));
  optimizer::Optimizer decays = adam;
  decays.weight_decay = 0.1;
  all.push_back(Pooled(decays, true));
  optimizer::Optimizer averages = adam;
  averages.use_ema = true;
  all.push_back(Pooled(averages, true));
  all.push_back(Pooled(adam, true, R"({"MaxNorm": {"max_value": 0.05, "axis": 1}})"));
  all.push_back(Pooled(adam, true));
  all.back().build.clipping = {.kind = optimizer::ClipKind::kGlobalNorm, .limit = 0.02};
  return all;
}

}  // namespace tfjob::strategy
