// Represents a model as a value: layers, and the calls that connect them. A Sequential model is a
// chain of calls. Several calls of one layer use the same variables.
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
  // The input shape, of one example, that the file states for this layer ("input_shape",
  // "batch_input_shape", "build_config"). Checked against the actual input.
  std::optional<Shape> stated_input = {};
};

// One application of a layer. `inputs` are the positions of the earlier calls whose values it
// takes. If there are none, it takes the features.
struct Call {
  int layer = 0;
  std::vector<int> inputs;
};

struct Model {
  std::string name = "sequential";
  std::vector<Layer> layers;
  std::vector<Call> calls;  // each comes after its inputs
  int output = -1;          // the call whose value is the model's output
};

// Connects the layers into a chain.
Model Sequential(std::string name, std::vector<Layer> layers);

// Returns "layer dense_1 (Dense)", for error messages.
std::string Describe(const Layer& layer);

// Returns the shape of one example's features as the model states it, either in its InputLayer or
// as the stated input of its first layer. Returns nullopt if it states none.
std::optional<Shape> StatedFeatureShape(const Model& model);

// Returns the shape of one example after each call, in the order of the calls. `feature_shape` is
// the shape of one example of the data. Returns InvalidArgument if two layers do not fit together.
// The message names both layers and both shapes.
StatusOr<std::vector<Shape>> CallShapes(const Model& model, const Shape& feature_shape);
// Returns the shape of the model's output for one example. Returns the same errors as CallShapes.
StatusOr<Shape> OutputShape(const Model& model, const Shape& feature_shape);

// Returns the variables with their full names, in the order in which their layers are first called.
// Returns the same errors as CallShapes, and InvalidArgument if a variable would be too large.
StatusOr<std::vector<VariableSpec>> Variables(const Model& model, const Shape& feature_shape);

// Returns the text for --print=model: a heading, one line per call (name and class of the layer,
// output shape, number of parameters), and the total number of parameters.
StatusOr<std::string> Summary(const Model& model, const Shape& feature_shape);

}  // namespace tfjob::model
