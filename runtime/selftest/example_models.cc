#include "runtime/selftest/example_models.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/yaml.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/keras.h"
#include "runtime/selftest/example_files.h"

namespace tfjob::selftest {
namespace {

using model::LossKind;

StatusOr<Json> FirstDocument(std::string_view text, std::string_view name) {
  ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYaml(text, name));
  if (documents.empty()) return InvalidArgument(name, " is empty");
  return std::move(documents[0]);
}

// Some gradients are zero except for rounding errors, such as the gradient of the key bias in an
// attention layer. Adam divides such a gradient by about epsilon, so a small epsilon would amplify
// the errors.
optimizer::Optimizer MakeOptimizer() {
  auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  adam.learning_rate = 0.003;
  adam.epsilon = 1e-3;
  adam.schedule.decay = optimizer::Decay::kCosine;
  adam.schedule.decay_steps = 5;
  return adam;
}

}  // namespace

std::span<const ExampleModel> ExampleModels() {
  static constexpr ExampleModel kModels[] = {
      {.name = "neumf-small",
       .batch = 16,
       .loss = LossKind::kBinaryCrossentropy,
       .check_numbers = true},
      {"bert-small", 3},
      {"gpt2-small", 3},
      {"transformer-small", 2},
      {"nmt-small", 2},
      {"mnist-cnn", 3},
      {.name = "resnet-small", .batch = 3, .logits = false},
      {.name = "densenet-small", .batch = 2, .logits = false}};
  return kModels;
}

StatusOr<model::Model> ReadExampleModel(std::string_view name) {
  const auto files = ExampleFiles();
  const auto found = std::ranges::find(files, name, &ExampleFile::name);
  if (found == files.end()) return NotFound("no example model ", name);
  ASSIGN_OR_RETURN(const Json manifest, FirstDocument(found->text, name));
  const JsonField data = JsonField(manifest)["data"];
  const auto json = data["model.json"].String();
  if (json.ok()) return model::ReadKerasJson(*json, name);
  ASSIGN_OR_RETURN(const std::string training, data["training.yaml"].String());
  ASSIGN_OR_RETURN(const Json file, FirstDocument(training, name));
  return model::ReadLayers(JsonField(file)["model"]["layers"]);
}

StatusOr<model::BuiltGraph> BuildExampleModel(const ExampleModel& example,
                                              const model::Model& model) {
  model::BuildOptions options{.batch_size = example.batch,
                              .optimizer = MakeOptimizer(),
                              .check_numbers = example.check_numbers};
  for (const auto& stated : StatedInputs(model)) options.features.push_back(*stated);
  ASSIGN_OR_RETURN(const auto outputs, OutputTypes(model, options.features));
  std::vector<int64_t> places = outputs[0].shape.dims();
  places.pop_back();  // the classes
  const bool sparse = example.loss == LossKind::kSparseCategoricalCrossentropy;
  options.objectives = {{.loss = {.kind = example.loss, .from_logits = sparse && example.logits},
                         .metrics = {model::Metric::kAccuracy},
                         .labels = {sparse ? DType::kInt64 : DType::kFloat32, Shape(places)}}};
  FindMasks(model, options);
  return Build(model, options);
}

}  // namespace tfjob::selftest
