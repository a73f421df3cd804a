// Reads and writes one layer in Keras' form. Private to this package.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Generates names for layers that have none in the file ("dense", "dense_1", …), and checks that
// the names in a model are unique.
class LayerNames {
 public:
  std::string Next(std::string_view class_name);
  Status Take(const std::string& name, const JsonField& field);

 private:
  std::map<std::string, int> counts_;
  std::set<std::string> taken_;
};

// Reads a layer in any form that ClassForm (arguments.h) supports. Reads a layer that is a whole
// model as a NestedModel.
StatusOr<Layer> ReadLayer(const JsonField& field, LayerNames& names);
// Returns the layer in the form of Keras 3.
Json WriteLayer(const Layer& layer);

// Returns the shape of one example in Keras' form, with null for the batch axis.
Json BatchShape(const Shape& example);
Json WriteDTypePolicy(DTypePolicy policy);

// Handle layers that are whole models. IsModelClass returns whether a class is a model class.
// ReadModel and WriteModel read and write a model, which may be nested in another model.
bool IsModelClass(std::string_view class_name);
StatusOr<Model> ReadModel(const JsonField& root);
Json WriteModel(const Model& model);

}  // namespace tfjob::model
