// Lists the classes of layers. To add one, define it in a file in layers/ (or in this folder, if it
// contains other layers), and add it to the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/layer/layer.h"

namespace tfjob::model {

// A family of classes, each with default arguments. InputLayer belongs to no family.
struct LayerFamily {
  std::string_view name;  // "core", "image", …
  std::vector<LayerConfig> layers;
};
std::vector<LayerFamily> LayerFamilies();

// Returns the class names in the order of the table.
std::vector<std::string> LayerClasses();
// Returns a layer of this class with default arguments, or nullopt if there is no such class.
std::optional<LayerConfig> MakeLayer(std::string_view class_name);

}  // namespace tfjob::model
