// A model as a value: layers, and the calls that connect them. Sequential is a chain of calls; a layer that is called
// twice shares its variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/model/initializer.h"
#include "runtime/model/layers.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model {

struct Layer {
  std::string name;  // unique in the model: "dense_1"
  LayerConfig config;
  bool trainable = true;
  // What the file says that this layer takes, without the batch ("input_shape", "batch_input_shape", "build_config"):
  // checked against what comes.
  std::optional<Shape> stated_input;
};

// One application of a layer. `inputs` are positions of earlier calls.
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

// A variable of a model, named as TensorFlow and Keras name it in checkpoints: "dense_1/kernel".
struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Initializer initializer;
  bool trainable = true;
};

// The variables in the order of their layers. `feature_shape` is that of one example; what the model's InputLayer says
// must agree with it. InvalidArgument names both layers and shapes when two do not fit.
StatusOr<std::vector<VariableSpec>> Variables(const Model& model, const Shape& feature_shape);

// The shape of one example of the output. The same errors.
StatusOr<Shape> OutputShape(const Model& model, const Shape& feature_shape);

// One line a layer: name, class, output shape, parameters; then their sum. For --print=model.
StatusOr<std::string> Summary(const Model& model, const Shape& feature_shape);

}  // namespace tfjob::model
