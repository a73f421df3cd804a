// Lists the layer classes. To add a class, define it in a file in layers/ (or in this folder, if
// its layers contain other layers), and add it to the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/layer/layer.h"

namespace tfjob::model {

// Lists one layer of each class in a family, with default arguments. InputLayer does not belong to
// a family.
struct LayerFamily {
  std::string_view name;  // "core", "image", …
  std::vector<LayerConfig> layers;
};
std::vector<LayerFamily> LayerFamilies();

// Returns the names of all classes, in the order of the table.
std::vector<std::string> LayerClasses();
// Returns a layer of this class with default arguments, or nullopt if there is no such class.
std::optional<LayerConfig> MakeLayer(std::string_view class_name);

}  // namespace tfjob::model
