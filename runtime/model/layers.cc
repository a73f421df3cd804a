#include "runtime/model/layers.h"

#include "runtime/model/layer_call.h"

namespace tfjob::model {
namespace {

template <size_t... indices>
std::vector<LayerConfig> AllLayers(std::index_sequence<indices...>) {
  return {LayerConfig(std::in_place_index<indices>)...};
}
std::vector<LayerConfig> AllLayers() {
  return AllLayers(std::make_index_sequence<std::variant_size_v<LayerConfig>>());
}

}  // namespace

std::string_view ClassName(const LayerConfig& config) {
  return std::visit([](const auto& layer) { return layer.kClass; }, config);
}

std::vector<std::string> LayerClasses() {
  std::vector<std::string> names;
  for (const LayerConfig& layer : AllLayers()) names.emplace_back(ClassName(layer));
  return names;
}

std::optional<LayerConfig> MakeLayer(std::string_view class_name) {
  for (LayerConfig& layer : AllLayers()) {
    if (ClassName(layer) == class_name) return std::move(layer);
  }
  return std::nullopt;
}

Status ReadArguments(LayerConfig& config, Arguments& arguments) {
  return std::visit([&](auto& layer) { return layer.Read(arguments); }, config);
}

void WriteArguments(const LayerConfig& config, Json& json) {
  std::visit([&](const auto& layer) { layer.Write(json); }, config);
}

StatusOr<Shape> OutputShape(const LayerConfig& config, const Shape& in) {
  return std::visit([&](const auto& layer) { return layer.OutputShape(in); }, config);
}

std::vector<VariableSpec> Variables(const LayerConfig& config, const Shape& in) {
  return std::visit(
      [&](const auto& layer) {
        if constexpr (requires { layer.Variables(in); }) {
          return layer.Variables(in);
        } else {
          return std::vector<VariableSpec>();
        }
      },
      config);
}

graph::Output Apply(const LayerConfig& config, const LayerCall& call) {
  return std::visit([&](const auto& layer) { return layer.Apply(call); }, config);
}

}  // namespace tfjob::model
