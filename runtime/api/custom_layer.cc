#include "runtime/api/custom_layer.h"

#include <utility>

#include "runtime/api/access.h"
#include "runtime/api/connect.h"
#include "runtime/model/operations/custom_layer.h"

namespace tfjob::api {
namespace {

std::string NameInMessages(const CustomLayer& layer) {
  return layer.name.empty() ? "CustomLayer" : StrCat("layer ", layer.name, " (CustomLayer)");
}

// Returns values that stand for the inputs or for the variables of the layer. The actual calls
// determine their shapes.
std::vector<Symbol> Placeholders(size_t count) {
  std::vector<Symbol> placeholders;
  for (size_t i = 0; i < count; ++i) placeholders.push_back(Input{.shape = {-1}});
  return placeholders;
}

StatusOr<Json> WriteBody(const CustomLayer& layer) {
  if (!layer.call) return InvalidArgument("call: expected a function that computes the output");
  if (layer.inputs < 1) return InvalidArgument("inputs: expected at least 1, got ", layer.inputs);
  const std::vector<Symbol> inputs = Placeholders(static_cast<size_t>(layer.inputs));
  const std::vector<Symbol> variables = Placeholders(layer.variables.size());
  std::vector<Symbol> all = inputs;
  all.insert(all.end(), variables.begin(), variables.end());
  return WriteFunctional(all, layer.call(inputs, variables), "body");
}

StatusOr<Json> WriteVariable(const LayerVariable& variable) {
  Form form("variable");
  form.Set("initializer", variable.initializer);
  form.Set("regularizer", variable.regularizer);
  form.Set("constraint", variable.constraint);
  RETURN_IF_ERROR(Annotate(form.error(), variable.name));
  Json json = std::move(form.data().arguments);
  json["name"] = variable.name;
  json["shape"] = variable.shape;
  json["trainable"] = variable.trainable;
  return json;
}

StatusOr<Json> WriteConfig(const CustomLayer& layer) {
  Json variables = Json::array();
  for (const LayerVariable& variable : layer.variables) {
    ASSIGN_OR_RETURN(Json written, WriteVariable(variable));
    variables.push_back(std::move(written));
  }
  ASSIGN_OR_RETURN(Json body, WriteBody(layer));
  Json config = {{"variables", std::move(variables)}, {"trainable", layer.trainable}};
  config["body"] = std::move(body);
  if (!layer.name.empty()) config["name"] = layer.name;
  return config;
}

}  // namespace

CustomLayer::operator Layer() const {
  using Class = model::layers::CustomLayer;
  LayerData data{
      .form = {{"class_name", std::string(Class::kClass)}, {"registered_name", Class::kRegistered}},
      .error = {}};
  StatusOr<Json> config = WriteConfig(*this);
  if (config.ok()) {
    data.form["config"] = *std::move(config);
  } else {
    data.error = Annotate(config.status(), NameInMessages(*this));
  }
  return Access::MakeLayer(std::move(data));
}

}  // namespace tfjob::api
