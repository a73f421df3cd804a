// A model as a value: layers, and the calls that connect them. Sequential is a chain of calls; a layer that is called
// twice shares its variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/model/layers.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model {

struct Layer {
  std::string name;  // unique in the model: "dense_1"
  LayerConfig config;
  bool trainable = true;
  // What the file says that this layer takes, of one example ("input_shape", "batch_input_shape", "build_config"):
  // checked against what comes.
  std::optional<Shape> stated_input = {};
};

// One application of a layer. `inputs` are positions of earlier calls; none: the features.
struct Call {
  int layer = 0;
  std::vector<int> inputs;
};

struct Model {
  std::string name = "sequential";
  std::vector<Layer> layers;
  std::vector<Call> calls;  // in an order in which each comes after its inputs
  int output = -1;          // the call whose value is the model's
};

// A chain of the layers.
Model Sequential(std::string name, std::vector<Layer> layers);

// "layer dense_1 (Dense)", for errors.
std::string Describe(const Layer& layer);

// What the model itself says of its features, of one example: its InputLayer, or its first layer's stated input.
std::optional<Shape> StatedFeatureShape(const Model& model);

// The shape of one example after each call, in the order of the calls. `feature_shape` is that of one example of the
// data. InvalidArgument names both layers and shapes when two do not fit.
StatusOr<std::vector<Shape>> CallShapes(const Model& model, const Shape& feature_shape);
// The last of them. The same errors.
StatusOr<Shape> OutputShape(const Model& model, const Shape& feature_shape);

// The variables with their full names, in the order of their layers. The same errors.
StatusOr<std::vector<VariableSpec>> Variables(const Model& model, const Shape& feature_shape);

// One line a layer: name, class, output shape, parameters; then their sum. For --print=model.
StatusOr<std::string> Summary(const Model& model, const Shape& feature_shape);

}  // namespace tfjob::model
