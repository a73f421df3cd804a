#include "runtime/model/keras.h"

#include <nlohmann/json.hpp>

#include "runtime/model/functional.h"
#include "runtime/model/keras_layer.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/shape.h"

namespace tfjob::model {
namespace {

StatusOr<std::vector<Layer>> ReadLayerList(const JsonField& field) {
  ASSIGN_OR_RETURN(std::vector<JsonField> elements, field.Elements());
  if (elements.empty()) return field.Mismatch("a list of at least one layer");
  LayerNames names;
  std::vector<Layer> layers;
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(Layer layer, ReadLayer(element, names));
    layers.push_back(std::move(layer));
  }
  return layers;
}

StatusOr<Model> ReadSequential(const JsonField& config) {
  // The first versions of Keras 2 wrote the list of layers as `config` itself.
  const bool list = config.present() && config.value()->is_array();
  ASSIGN_OR_RETURN(std::vector<Layer> layers, ReadLayerList(list ? config : config["layers"]));
  ASSIGN_OR_RETURN(std::string name, config["name"].StringOr("sequential"));
  return Sequential(std::move(name), std::move(layers));
}

// Returns the policy to write for the model as a whole: the policy of all layers except input
// layers, or float32 if the layers have different policies or none. Keras scales the loss if this
// policy is mixed_float16.
DTypePolicy SharedPolicy(const Model& model) {
  const std::optional<DTypePolicy> first = model.layers.back().policy;
  for (const Layer& layer : model.layers) {
    if (layer.policy != first && layer.config.As<layers::InputLayer>() == nullptr)
      return DTypePolicy::kFloat32;
  }
  return first.value_or(DTypePolicy::kFloat32);
}

Json WriteSequential(const Model& model) {
  Json layers = Json::array();
  for (const Layer& layer : model.layers) layers.push_back(WriteLayer(layer));
  Json config = {{"name", model.name},
                 {"trainable", true},
                 {"dtype", WriteDTypePolicy(SharedPolicy(model))},
                 {"layers", std::move(layers)}};
  const std::optional<TensorType> features = StatedInputs(model)[0];
  if (features) config["build_input_shape"] = BatchShape(features->shape);
  return config;
}

// Rejects activations that compute different values in tf.keras 2 and Keras 3, although they have
// the same name.
Status RefuseOtherActivations(const JsonField& value) {
  if (value.value()->is_object()) {
    ASSIGN_OR_RETURN(const auto members, value.Members());
    for (const auto& [name, member] : members) {
      const JsonField named = member.IsObject() ? member["config"] : member;
      const StatusOr<std::string> text = named.String();
      const bool activation = name == "activation" || name == "recurrent_activation";
      if (activation && text.ok() && *text == "hard_sigmoid") {
        return InvalidArgument(member.path(), ": hard_sigmoid of tf.keras 2 is not supported, ",
                               "because Keras 3 computes another function; use sigmoid, or train ",
                               "with Keras 3");
      }
      if (member.present()) RETURN_IF_ERROR(RefuseOtherActivations(member));
    }
  } else if (value.value()->is_array()) {
    ASSIGN_OR_RETURN(const auto elements, value.Elements());
    for (const JsonField& element : elements) {
      if (element.present()) RETURN_IF_ERROR(RefuseOtherActivations(element));
    }
  }
  return OkStatus();
}

}  // namespace

bool IsModelClass(std::string_view class_name) {
  return class_name == "Sequential" || class_name == "Functional" || class_name == "Model";
}

StatusOr<Model> ReadModel(const JsonField& root) {
  ASSIGN_OR_RETURN(const std::string class_name, root["class_name"].String());
  if (class_name == "Sequential") {
    ASSIGN_OR_RETURN(Model model, ReadSequential(root["config"]));
    RETURN_IF_ERROR(CheckEffort(model));
    return model;
  }
  if (IsModelClass(class_name)) return ReadFunctional(root["config"]);
  return InvalidArgument("class_name: model class ", class_name,
                         " is not supported; only Sequential and Functional are");
}

Json WriteModel(const Model& model) {
  if (model.sequential) {
    return {{"module", "keras"},
            {"class_name", "Sequential"},
            {"config", WriteSequential(model)},
            {"registered_name", nullptr}};
  }
  // Keras 3 writes this module, and does not find the class in any other module.
  return {{"module", "keras.src.models.functional"},
          {"class_name", "Functional"},
          {"config", WriteFunctional(model)},
          {"registered_name", "Functional"}};
}

StatusOr<Model> ReadKerasJson(std::string_view text, std::string_view what) {
  ASSIGN_OR_RETURN(Json document, ParseJson(text, what));
  const JsonField root(document);
  StatusOr<Model> model = ReadModel(root);
  const StatusOr<std::string> version = root["keras_version"].String();
  if (model.ok() && version.ok() && version->starts_with("2.")) {
    const Status known = RefuseOtherActivations(root["config"]);
    if (!known.ok()) model = known;
  }
  if (!model.ok()) return Annotate(model.status(), what);
  return model;
}

StatusOr<Model> ReadLayers(const JsonField& layers) {
  ASSIGN_OR_RETURN(std::vector<Layer> list, ReadLayerList(layers));
  return Sequential("sequential", std::move(list));
}

Json WriteKerasJson(const Model& model) {
  return WriteModel(model);
}

}  // namespace tfjob::model
