#include "runtime/api/datasets/examples.h"

#include <algorithm>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/build.h"

namespace tfjob::api {

ExampleNames::ExampleNames(const model::Model& model) {
  using data::Example;
  std::vector<std::string> inputs, labels, weights;
  for (int call : model.inputs) inputs.push_back(model::LayerOf(model, {call}).name);
  const std::vector<std::string> outputs = model::OutputNames(model);
  for (size_t i = 0; i < outputs.size(); ++i) {
    labels.push_back(model::LabelsName(model, i));
    weights.push_back(model::SampleWeightsName(model, i));
  }
  roles_ = {{"x", "inputs", &Example::x, &Example::inputs, inputs, model::InputNames(model)},
            {"y", "targets", &Example::y, &Example::targets, outputs, labels},
            {"sample_weight", "sample_weights", &Example::sample_weight, &Example::sample_weights,
             outputs, weights}};
}

StatusOr<tfjob::data::Example> ExampleNames::ToInternal(const data::Example& example) const {
  tfjob::data::Example made;
  for (const Role& role : roles_) RETURN_IF_ERROR(AddRole(role, example, made));
  return made;
}

tfjob::Status ExampleNames::AddRole(const Role& role, const data::Example& example,
                                    tfjob::data::Example& made) {
  const Tensor& only = example.*role.only;
  if (only.present()) {
    if (role.layers.size() != 1) {
      return InvalidArgument(role.word, ": the model has ", role.layers.size(), " of them: give ",
                             role.words, ", by name");
    }
    made.push_back({role.feeds[0], Access::Data(only)});
  }
  for (const auto& [name, value] : example.*role.named) {
    if (!value.present()) continue;
    const auto layer = std::ranges::find(role.layers, name);
    if (layer == role.layers.end()) {
      return InvalidArgument(role.words, ".", name, ": the model has no such input or output",
                             DidYouMean(name, role.layers));
    }
    if (only.present()) {
      return InvalidArgument("the example has both ", role.word, " and ", role.words,
                             "; give one of the two");
    }
    made.push_back(
        {role.feeds[static_cast<size_t>(layer - role.layers.begin())], Access::Data(value)});
  }
  return OkStatus();
}

data::Example ExampleNames::ToPublic(const tfjob::data::Example& example) const {
  data::Example made;
  for (const tfjob::data::NamedTensor& value : example) {
    for (const Role& role : roles_) {
      const auto feed = std::ranges::find(role.feeds, value.name);
      if (feed == role.feeds.end()) continue;
      Tensor tensor = Access::MakeTensor(value.value);
      if (role.layers.size() == 1) {
        made.*role.only = std::move(tensor);
      } else {
        (made.*role.named)[role.layers[static_cast<size_t>(feed - role.feeds.begin())]] =
            std::move(tensor);
      }
    }
  }
  return made;
}

}  // namespace tfjob::api
