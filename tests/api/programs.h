// Defines data for the tests of this package: points that a small model learns to classify.
#pragma once

#include <gtest/gtest.h>
#include <tfjob/tfjob.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tj = tfjob;

inline std::string Temp(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

// Returns `examples` points. Points with x0 > x1 have the class 1, and all others the class 0.
inline tj::data::Arrays Points(int64_t examples) {
  tj::Tensor x(tj::DType::kFloat32, {examples, 2}), y(tj::DType::kInt64, {examples});
  uint32_t state = 12345;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;
    return static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
  };
  for (int64_t i = 0; i < examples; ++i) {
    const float a = next(), b = next();
    x.float32()[static_cast<size_t>(2 * i)] = a;
    x.float32()[static_cast<size_t>(2 * i + 1)] = b;
    y.int64()[static_cast<size_t>(i)] = a > b ? 1 : 0;
  }
  return {.x = x, .y = y};
}

inline tj::Model Classifier(bool with_input = true) {
  std::vector<tj::Layer> layers = {tj::Dense{.units = 8, .activation = "tanh"},
                                   tj::Dense{.units = 2, .name = "logits"}};
  if (with_input) layers.insert(layers.begin(), tj::Input{.shape = {2}});
  return tj::Sequential(layers);
}

inline tj::CompileOptions Options() {
  return {.optimizer = tj::Adam{.learning_rate = 0.02},
          .loss = tj::SparseCategoricalCrossentropy{.from_logits = true},
          .metrics = {"accuracy"}};
}

inline tj::CompiledModel Compiled(const tj::Model& model = Classifier()) {
  return tj::Session(tj::Strategy::OneDevice(), {.threads = 1}).Compile(model, Options()).value();
}

inline tj::FitOptions Quietly(int64_t epochs, int64_t initial_epoch = 0) {
  return {.epochs = epochs, .initial_epoch = initial_epoch, .verbose = tj::Verbose::kSilent};
}

inline std::vector<std::vector<float>> WeightsOf(const tj::CompiledModel& model) {
  std::vector<std::vector<float>> all;
  for (const auto& [name, tensor] : model.Weights().value())
    all.emplace_back(tensor.float32().begin(), tensor.float32().end());
  return all;
}
