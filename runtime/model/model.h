// Represents a model as a value: layers, and the calls that connect them into a graph. Several
// calls of one layer use the same variables. A Sequential model is a chain of calls.
//
// All types and shapes are for one example, unless noted otherwise.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/dtype_policy.h"
#include "runtime/model/layer/layer.h"
#include "runtime/tensor/shape.h"

namespace tfjob::model {

struct Layer {
  std::string name;  // unique in the model: "dense_1"
  LayerConfig config;
  bool trainable = true;
  // True if `trainable` is false only because the whole model is frozen, or because of Freeze
  // (layer_patterns.h).
  bool frozen_from_outside = false;
  // The input shape that the file states for this layer ("input_shape", "batch_input_shape",
  // "build_config"). Checked against the shape of the first input.
  std::optional<Shape> stated_input = {};
  // Applied to each output of each call (ActivityPenalty).
  Regularizer activity_regularizer = {};
  // Set by Recompute (layer_patterns.h).
  bool recompute = false;
  // If empty, the layer computes in float32, unless SetPolicy (apply_layer.h) sets a policy.
  std::optional<DTypePolicy> policy = {};
};

// One of the values that a call returns.
struct ValueRef {
  int call = -1;
  int output = 0;
  bool operator==(const ValueRef&) const = default;
};

// One application of a layer. A call without inputs takes an input of the model.
struct Call {
  int layer = 0;
  std::vector<ValueRef> inputs;
  // The masks that the file specifies for the inputs: bool values whose axes are the first axes of
  // the inputs. An input without an element in the list, or with an element whose `call` is -1,
  // keeps the mask of its value.
  std::vector<ValueRef> masks = {};
  // The layer with the arguments of this call, if it takes arguments besides its inputs.
  std::optional<LayerConfig> config = {};
};

struct Model {
  std::string name = "sequential";
  std::vector<Layer> layers;
  std::vector<Call> calls;  // each comes after its inputs
  // The calls that take the model's inputs, in the order of the inputs.
  std::vector<int> inputs;
  std::vector<ValueRef> outputs;
  bool sequential = true;  // the model was read from a Sequential model, and is written as one
};

// Returns a model in which each layer takes the output of the previous one.
Model Sequential(std::string name, std::vector<Layer> layers);

// Returns "layer dense_1 (Dense)", for error messages.
std::string Describe(const Layer& layer);
// Returns the layer's variables, with the layer's name prepended to their names. If the layer is
// frozen, no variable is trainable. Requires inputs that the layer accepts.
std::vector<VariableSpec> VariablesOf(const Layer& layer, std::span<const TensorType> in);
// Returns the layer that produces a value.
const Layer& LayerOf(const Model& model, const ValueRef& value);

// Returns the layer's config with the arguments of this call.
const LayerConfig& ConfigOf(const Model& model, const Call& call);

// Returns the types of a single float32 input of this shape.
std::vector<TensorType> Features(Shape shape);

// The name of the input, if a model has only one.
inline constexpr char kFeatures[] = "features";
// Returns the names of the model's inputs: kFeatures, or, if there are several, the names of their
// layers.
std::vector<std::string> InputNames(const Model& model);
// Returns the names of the outputs: the names of their layers, with "_1", "_2", … appended to
// distinguish several outputs of one layer.
std::vector<std::string> OutputNames(const Model& model);

// Returns the types of the inputs that the model specifies, in its InputLayers or in the layers
// that read the inputs, and nullopt for an input whose type it does not specify.
std::vector<std::optional<TensorType>> StatedInputs(const Model& model);

// Returns the types after each call, in the order of the calls. `in` are the types of the model's
// inputs. Returns InvalidArgument if `in` has the wrong number of types, or if two layers are
// incompatible, with a message that names both layers and both shapes.
StatusOr<std::vector<std::vector<TensorType>>> CallTypes(const Model& model,
                                                         std::span<const TensorType> in);
// Returns the types of the model's outputs. Propagates errors from CallTypes.
StatusOr<std::vector<TensorType>> OutputTypes(const Model& model, std::span<const TensorType> in);

// Returns the variables with their full names, in the order in which their layers are first called.
// Propagates errors from CallTypes. Returns InvalidArgument if a variable would be too large.
StatusOr<std::vector<VariableSpec>> Variables(const Model& model, std::span<const TensorType> in);

// Returns the text for --print=model: a heading, one line per call (name and class of the layer,
// output shape, number of parameters), and the total number of parameters.
StatusOr<std::string> Summary(const Model& model, std::span<const TensorType> in);

// Appends the model's ops to the graph. `call` contains the model's inputs and variables, in the
// order of InputNames and Variables, and receives the assignments and penalties of all layers and
// the masks of the outputs. Returns the outputs. Requires inputs that OutputTypes accepts.
std::vector<graph::Output> Forward(const Model& model, LayerCall& call);

}  // namespace tfjob::model
