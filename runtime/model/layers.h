// Defines the layers. Each is a struct that holds the supported arguments of the Keras layer of the
// same name (keras.io/api/layers).
//
// Every layer has these members:
//   kClass            Keras' class name
//   Read(arguments)   reads its arguments from a file; errors name what is supported
//   Write(config)     writes its arguments to Keras 3's config
//   OutputShape(in)   returns the shape of its output for one example, given the shape of one
//                     example of its input; returns InvalidArgument if `in` does not fit
//   Variables(in)     returns its variables in Keras' order, named without the layer's name
//                     ("kernel"); layers without variables do not have this member
//   Apply(call)       appends its ops to the graph
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/model/arguments.h"
#include "runtime/model/initializer.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::graph {
struct Output;
}  // namespace tfjob::graph

namespace tfjob::model {

// A variable of a model, named as in TensorFlow's and Keras' checkpoints: "dense_1/kernel".
struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Initializer initializer;
  bool trainable = true;
};

struct LayerCall;  // layer_call.h

enum class ActivationKind { kLinear, kRelu, kSigmoid, kTanh, kSoftmax };

struct InputLayer {
  static constexpr std::string_view kClass = "InputLayer";
  Shape shape;  // of one example

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// Computes activation(x·kernel + bias) over the last axis of x. Has the variables kernel [in,units]
// and, if use_bias is set, bias [units].
struct Dense {
  static constexpr std::string_view kClass = "Dense";
  int64_t units = 0;
  ActivationKind activation = ActivationKind::kLinear;
  bool use_bias = true;
  Initializer kernel_initializer = Initializer::GlorotUniform();
  Initializer bias_initializer = Initializer::Zeros();

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const;
  std::vector<VariableSpec> Variables(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

struct Flatten {
  static constexpr std::string_view kClass = "Flatten";

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

struct Reshape {
  static constexpr std::string_view kClass = "Reshape";
  std::vector<int64_t> target_shape;  // of one example; one dimension may be -1

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

struct Activation {
  static constexpr std::string_view kClass = "Activation";
  ActivationKind activation = ActivationKind::kLinear;

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

struct ReLU {
  static constexpr std::string_view kClass = "ReLU";

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const;
};

// Applies softmax over the last axis.
struct Softmax {
  static constexpr std::string_view kClass = "Softmax";

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const;
  graph::Output Apply(const LayerCall& call) const;
};

// In training, sets each element to 0 with probability `rate`, else divides it by 1 - rate. Does
// nothing in other modes.
struct Dropout {
  static constexpr std::string_view kClass = "Dropout";
  double rate = 0;
  std::optional<int64_t> seed;  // only kept for Write; dropout uses the run's seed

  Status Read(Arguments& arguments);
  void Write(Json& config) const;
  StatusOr<Shape> OutputShape(const Shape& in) const { return in; }
  graph::Output Apply(const LayerCall& call) const;
};

using LayerConfig =
    std::variant<InputLayer, Dense, Flatten, Reshape, Activation, ReLU, Softmax, Dropout>;

std::string_view ClassName(const LayerConfig& config);
// Returns the class names in the order of the variant.
std::vector<std::string> LayerClasses();
// Returns a layer of this class with default arguments, or nullopt if there is no such class.
std::optional<LayerConfig> MakeLayer(std::string_view class_name);

// Call the layer's Read, Write, OutputShape, Variables or Apply. Variables returns an empty list if
// the layer has no such member.
Status ReadArguments(LayerConfig& config, Arguments& arguments);
void WriteArguments(const LayerConfig& config, Json& json);
StatusOr<Shape> OutputShape(const LayerConfig& config, const Shape& in);
std::vector<VariableSpec> Variables(const LayerConfig& config, const Shape& in);
graph::Output Apply(const LayerConfig& config, const LayerCall& call);

}  // namespace tfjob::model
