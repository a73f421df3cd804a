// Builds the JSON of functional models, for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/model/keras.h"

namespace tfjob::model {

// Returns a tensor argument of a call in the form of Keras 3.
inline Json Tensor3(const std::string& layer, int node = 0, int tensor = 0) {
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"shape", {nullptr, 3}}, {"keras_history", {layer, node, tensor}}}}};
}

inline Json Input(const std::string& name, int64_t size) {
  return {{"class_name", "InputLayer"},
          {"config", {{"name", name}, {"batch_shape", {nullptr, size}}, {"dtype", "float32"}}},
          {"name", name},
          {"inbound_nodes", Json::array()}};
}

// Returns a JSON array, even for a single element. An initialiser list would not do: some compilers
// treat a list with one element as a copy of the element.
template <typename... Elements>
Json List(Elements... elements) {
  Json list = Json::array();
  (list.push_back(std::move(elements)), ...);
  return list;
}

inline Json NodeJson(Json args, Json kwargs = Json::object()) {
  return {{"args", std::move(args)}, {"kwargs", std::move(kwargs)}};
}

// Returns a layer. Each element of `calls` lists the positional arguments of one call.
inline Json LayerJson(const std::string& class_name, const std::string& name, Json config,
                      const std::vector<Json>& calls) {
  config["name"] = name;
  Json nodes = Json::array();
  for (const Json& args : calls) nodes.push_back({{"args", args}, {"kwargs", {{"mask", nullptr}}}});
  return {{"class_name", class_name},
          {"config", std::move(config)},
          {"name", name},
          {"inbound_nodes", std::move(nodes)}};
}

inline Json Functional(const std::string& name, std::vector<Json> layers, Json inputs,
                       Json outputs) {
  return {{"class_name", "Functional"},
          {"config",
           {{"name", name},
            {"layers", std::move(layers)},
            {"input_layers", std::move(inputs)},
            {"output_layers", std::move(outputs)}}}};
}

inline StatusOr<Model> Read(const Json& json) {
  return ReadKerasJson(PrintJson(json), "m.json");
}
inline std::string Error(const Json& json) {
  const StatusOr<Model> model = Read(json);
  return model.ok() ? "accepted" : std::string(Message(model.status()));
}

inline std::vector<TensorType> TwoInputs() {
  return {{DType::kFloat32, {4}}, {DType::kFloat32, {4}}};
}

// Returns a model with two inputs and a Softmax layer. The only call of the Softmax has the
// arguments `node`.
inline Json SoftmaxOf(Json node) {
  Json model = Functional("m", {Input("a", 4), Input("b", 4), LayerJson("Softmax", "s", {}, {})},
                          {{"a", 0, 0}, {"b", 0, 0}}, {"s", 0, 0});
  model["config"]["layers"][2]["inbound_nodes"] = List(std::move(node));
  return model;
}

}  // namespace tfjob::model
