// Builds the small example models of deploy/examples/models.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/model/build.h"
#include "runtime/model/model.h"

namespace tfjob::selftest {

struct ExampleModel {
  std::string_view name;  // "bert-small"
  int64_t batch = 0;
  model::LossKind loss = model::LossKind::kSparseCategoricalCrossentropy;
  bool logits = true;          // what the model returns, if the loss is sparse
  bool check_numbers = false;  // whether the step also checks all numbers (BuildOptions)
};

std::span<const ExampleModel> ExampleModels();

// Returns the model of an example. The program contains the examples, so no file is read. Returns
// NotFound if there is no such example.
StatusOr<model::Model> ReadExampleModel(std::string_view name);

// Builds a training step that uses Adam with a learning rate that changes with the step.
StatusOr<model::BuiltGraph> BuildExampleModel(const ExampleModel& example,
                                              const model::Model& model);

}  // namespace tfjob::selftest
