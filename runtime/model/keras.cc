#include "runtime/model/keras.h"

#include <nlohmann/json.hpp>

#include "runtime/model/functional.h"
#include "runtime/model/keras_layer.h"
#include "runtime/model/nested_model.h"

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
  // In the first versions of Keras 2, `config` was the list of layers itself.
  const bool list = config.present() && config.value()->is_array();
  ASSIGN_OR_RETURN(std::vector<Layer> layers, ReadLayerList(list ? config : config["layers"]));
  ASSIGN_OR_RETURN(std::string name, config["name"].StringOr("sequential"));
  return Sequential(std::move(name), std::move(layers));
}

Json WriteSequential(const Model& model) {
  Json layers = Json::array();
  for (const Layer& layer : model.layers) layers.push_back(WriteLayer(layer));
  Json config = {{"name", model.name},
                 {"trainable", true},
                 {"dtype", DTypePolicy()},
                 {"layers", std::move(layers)}};
  const std::optional<TensorType> features = StatedInputs(model)[0];
  if (features) config["build_input_shape"] = BatchShape(features->shape);
  return config;
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
  // The module that Keras 3 writes; it does not find the class in another one.
  return {{"module", "keras.src.models.functional"},
          {"class_name", "Functional"},
          {"config", WriteFunctional(model)},
          {"registered_name", "Functional"}};
}

StatusOr<Model> ReadKerasJson(std::string_view text, std::string_view what) {
  ASSIGN_OR_RETURN(Json document, ParseJson(text, what));
  StatusOr<Model> model = ReadModel(JsonField(document));
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
