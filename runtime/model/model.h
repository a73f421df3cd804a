// Represents a model as a value: layers, and calls of these layers that form a graph. All calls of
// a layer use the same variables. A Sequential model is a chain of calls.
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
  // Whether `trainable` is false only because the whole model is frozen, or because of Freeze
  // (layer_patterns.h).
  bool frozen_from_outside = false;
  // The input shape that the file states for this layer ("input_shape", "batch_input_shape" or
  // "build_config"). The shape of the first input must match.
  std::optional<Shape> stated_input = {};
  // Applies to each output of each call (ActivityPenalty).
  Regularizer activity_regularizer = {};
  // Set by Recompute (layer_patterns.h).
  bool recompute = false;
  // If unset, the layer computes in float32, unless SetPolicy (apply_layer.h) sets a policy later.
  std::optional<DTypePolicy> policy = {};
};

// Identifies one of the values that a call returns.
struct ValueRef {
  int call = -1;
  int output = 0;
  bool operator==(const ValueRef&) const = default;
};

// Represents one call of a layer. A call without inputs reads an input of the model.
struct Call {
  int layer = 0;
  std::vector<ValueRef> inputs;
  // The masks that the file specifies for the inputs: bool values whose axes are the first axes of
  // the inputs. An input that has no element in this list, or whose element has a `call` of -1,
  // keeps the mask of its value.
  std::vector<ValueRef> masks = {};
  // The layer with the arguments of this call. Set only if the layer accepts arguments besides its
  // inputs.
  std::optional<LayerConfig> config = {};
};

// Names variables of a model that training does not change, by a shell pattern (fnmatch) of their
// full names. See Freeze (layer_patterns.h).
struct FrozenVariables {
  std::string pattern;
  bool optional = false;  // no variable needs to match, because a layer does
};

struct Model {
  std::string name = "sequential";
  std::vector<Layer> layers;
  std::vector<Call> calls;  // ordered so that each call comes after its inputs
  // The calls that read the model's inputs, in the order of the inputs.
  std::vector<int> inputs;
  std::vector<ValueRef> outputs;
  bool sequential = true;  // whether files represent the model as a Sequential model
  std::vector<FrozenVariables> frozen = {};
};

// Returns a model in which the input of each layer is the output of the previous layer.
Model Sequential(std::string name, std::vector<Layer> layers);

// Returns "layer dense_1 (Dense)", for error messages.
std::string Describe(const Layer& layer);
// Returns the layer's variables, with the layer's name prepended to their names. If the layer is
// frozen, none of them is trainable. Ignores Model::frozen. `in` must be types that the layer
// accepts.
std::vector<VariableSpec> VariablesOf(const Layer& layer, std::span<const TensorType> in);
// Returns the layer that produces a value.
const Layer& LayerOf(const Model& model, const ValueRef& value);

// Returns the layer's config with the arguments of this call.
const LayerConfig& ConfigOf(const Model& model, const Call& call);

// Returns the types of a single float32 input of this shape.
std::vector<TensorType> Features(Shape shape);

// The input's name, for a model with a single input.
inline constexpr char kFeatures[] = "features";
// Returns the names of the model's inputs: kFeatures if there is only one input, and otherwise the
// names of the layers that read them.
std::vector<std::string> InputNames(const Model& model);
// Returns the names of the outputs. An output has the name of its layer; "_1", "_2", … is appended
// to distinguish several outputs of the same layer.
std::vector<std::string> OutputNames(const Model& model);

// Returns the types that the model states for its inputs, in InputLayers or in the layers that read
// the inputs. Returns nullopt for an input whose type the model does not state.
std::vector<std::optional<TensorType>> StatedInputs(const Model& model);

// Returns the output types of each call, in the order of the calls. `in` contains the types of the
// model's inputs. Returns InvalidArgument if `in` has the wrong number of types, if two layers are
// incompatible (the message names both layers and both shapes), or if a pattern in Model::frozen
// matches no variable.
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

// Appends the model's ops to the graph, and returns the outputs. `call` must contain the model's
// inputs and variables, in the order of InputNames and Variables. Adds the assignments and
// penalties of all layers, and the masks of the outputs, to `call`. OutputTypes must accept the
// inputs.
std::vector<graph::Output> Forward(const Model& model, LayerCall& call);

}  // namespace tfjob::model
