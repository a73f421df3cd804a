// Represents a layer of any class as a value. Each class is a struct with the arguments of the
// Keras layer of the same name (keras.io/api/layers). model/layers has one file per family of
// classes; model/layer_table.h lists all classes.
//
// Every class has these members:
//   kClass              Keras' class name; or class_name(), if the name differs between layers
//   Arguments(visitor)  lists its arguments (argument_visitor.h)
//   Apply(call)         appends its ops to the graph. Returns one Output, or a list of them
// and one of these, which return InvalidArgument if the inputs do not fit:
//   OutputShape(in)     for a class with one input and one output of the same float type: the shape
//                       of the output, given the shape of the input
//   OutputTypes(in)     for any other class: the output types, given the input types
// A class with variables also has one of
//   Variables(in)       its variables in Keras' order, named without the layer's name ("kernel").
//                       Takes the same argument as OutputShape or OutputTypes
// Optional members:
//   kAnyDType = true    a class with OutputShape that takes values of any type
//   kSupportsMasking = true
//                       a class whose first output has the mask of the first input, unless Apply
//                       sets the masks itself. The outputs of any other class have none
//   kTakesMask = true   a class without CallArguments whose calls take `mask`: the masks of its
//                       inputs
//   kTrainingByDefault = true
//                       a class without CallArguments whose call() has training=True in Keras, so
//                       that files of Keras 3 contain this argument
//   kComputesInFloat32 = true
//                       a class that computes in float32 even if the dtype policy of its layer
//                       names a half type (model/apply_layer.h)
//   kKeepsTypes = true  a class whose inputs and variables are never cast for its layer's policy:
//                       an input, a function, or a class whose inner layers have policies
//   CallArguments(visitor)
//                       lists the arguments of a call (call_arguments.h), for a class that takes
//                       arguments besides its inputs
//
// All shapes and types are for one example: they lack the batch axis. Any number of threads may
// call the methods of a layer at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/graph/builder.h"
#include "runtime/model/layer/argument_visitor.h"
#include "runtime/model/layer/call_arguments.h"
#include "runtime/model/layer/initializer.h"
#include "runtime/model/layer/weight_rules.h"

namespace tfjob::model {

using graph::TensorType;

// A variable of a model, named as in TensorFlow's and Keras' checkpoints: "dense_1/kernel".
struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Initializer initializer;
  bool trainable = true;
  WeightRules rules = {};
  // True if `trainable` is false only because of Layer::frozen_from_outside. Keras' older format
  // orders the variables as if `trainable` were true.
  bool frozen_from_outside = false;

  // Applies the flags of a layer that contains the variable (Layer in model.h).
  void InLayer(bool layer_trainable, bool layer_frozen_from_outside) {
    const bool in_file =
        (trainable || frozen_from_outside) && (layer_trainable || layer_frozen_from_outside);
    trainable = trainable && layer_trainable;
    frozen_from_outside = in_file && !trainable;
  }
};

// The arguments of Apply: the graph, the inputs, the masks and the variables. Apply adds to
// `assignments` and `penalties`, and may set `output_masks`.
//
// A value may have a mask, as in Keras: bool [batch, steps], false for the masked steps, which
// layers skip. An invalid Output stands for no mask.
struct LayerCall {
  graph::Builder& b;
  std::vector<graph::Output> inputs = {};     // [batch, …]
  std::vector<graph::Output> masks = {};      // one per input; may be empty if no input has one
  std::vector<graph::Output> variables = {};  // in the order of Variables()
  bool training = false;
  bool trainable = true;               // false: the layer is frozen
  graph::Output step = {}, seed = {};  // int64 scalars; valid if training
  int64_t replica = 0;                 // so that tasks that share a seed draw different numbers

  struct Assignment {
    size_t variable = 0;  // index in `variables`
    graph::Output value;
  };
  // Set by the layer: how a training step changes variables that have no gradient.
  std::vector<Assignment> assignments = {};
  // Set by the layer: the masks of its outputs. May be shorter than the list of outputs; the
  // remaining outputs then have no masks. See kSupportsMasking.
  std::optional<std::vector<graph::Output>> output_masks = {};
  // Set by the layer: scalars that are added to the loss, in training and evaluation.
  std::vector<graph::Output> penalties = {};

  graph::Output x() const { return inputs[0]; }
  graph::Output mask(size_t input = 0) const {
    return input < masks.size() ? masks[input] : graph::Output();
  }
  // Returns the types of one example of each input.
  std::vector<TensorType> ExampleTypes() const;
  // Returns the shape of one example of the first input.
  Shape ExampleShape() const;
  int64_t batch_size() const { return b.shape(x()).dim(0); }
};

// ExampleOf removes the batch axis from a shape; Batched adds it.
Shape ExampleOf(const Shape& batched);
Shape Batched(int64_t batch_size, const Shape& example);

// Holds a layer of any class. The layer is immutable, and copies share it.
class LayerConfig {
 public:
  template <typename L>
    requires requires { L::kClass; }
  LayerConfig(L layer)  // NOLINT: a layer of any class is a layer
      : held_(std::make_shared<Holder<L>>(std::move(layer))) {}

  std::string_view class_name() const { return held_->class_name(); }
  // Returns the layer as class L, or null if it has another class.
  template <typename L>
  const L* As() const {
    const auto* holder = dynamic_cast<const Holder<L>*>(held_.get());
    return holder == nullptr ? nullptr : &holder->layer;
  }

  // Returns a copy after the visitor has visited, and perhaps changed, its arguments.
  LayerConfig Visited(ArgumentVisitor& visitor) const {
    return LayerConfig(held_->Visited(visitor));
  }
  // Returns whether a call takes arguments besides its inputs.
  bool takes_arguments() const { return held_->takes_arguments(); }
  // Returns whether a call takes the masks of its inputs as the `mask` argument.
  bool takes_mask() const { return held_->takes_mask(); }
  // Returns whether Keras calls the layer with training=True unless the user sets the argument.
  bool training_by_default() const { return held_->training_by_default(); }
  bool computes_in_float32() const { return held_->computes_in_float32(); }
  bool keeps_types() const { return held_->keeps_types(); }
  // Returns a copy after the visitor has visited, and perhaps set, the arguments of one call.
  LayerConfig Called(CallVisitor& visitor) const { return LayerConfig(held_->Called(visitor)); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const {
    return held_->OutputTypes(in);
  }
  // Requires inputs that OutputTypes accepts.
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const {
    return held_->Variables(in);
  }
  // Appends the layer's ops. Requires inputs that OutputTypes accepts. Sets the masks of all
  // outputs.
  std::vector<graph::Output> Apply(LayerCall& call) const;

 private:
  class Any {
   public:
    virtual ~Any() = default;
    virtual std::string_view class_name() const = 0;
    virtual std::shared_ptr<const Any> Visited(ArgumentVisitor& visitor) const = 0;
    virtual bool takes_arguments() const = 0;
    virtual bool takes_mask() const = 0;
    virtual bool training_by_default() const = 0;
    virtual bool computes_in_float32() const = 0;
    virtual bool keeps_types() const = 0;
    virtual std::shared_ptr<const Any> Called(CallVisitor& visitor) const = 0;
    virtual StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const = 0;
    virtual std::vector<VariableSpec> Variables(std::span<const TensorType> in) const = 0;
    virtual std::vector<graph::Output> Apply(LayerCall& call) const = 0;
    virtual bool supports_masking() const = 0;
  };
  template <typename L>
  class Holder;

  explicit LayerConfig(std::shared_ptr<const Any> held) : held_(std::move(held)) {}

  std::shared_ptr<const Any> held_;
};

// Returns InvalidArgument if the number of inputs is not one or, without `any_dtype`, if the input
// is not of a float type.
Status ExpectOneInput(std::span<const TensorType> in, bool any_dtype);

template <typename L>
class LayerConfig::Holder final : public LayerConfig::Any {
 public:
  explicit Holder(L held) : layer(std::move(held)) {}

  std::string_view class_name() const override {
    if constexpr (requires { layer.class_name(); }) {
      return layer.class_name();
    } else {
      return L::kClass;
    }
  }

  std::shared_ptr<const Any> Visited(ArgumentVisitor& visitor) const override {
    auto copy = std::make_shared<Holder>(layer);
    copy->layer.Arguments(visitor);
    return copy;
  }

  bool takes_arguments() const override {
    return requires(L called, CallVisitor& visitor) { called.CallArguments(visitor); };
  }

  bool takes_mask() const override {
    if constexpr (requires { L::kTakesMask; }) return L::kTakesMask;
    return false;
  }

  bool training_by_default() const override {
    if constexpr (requires { L::kTrainingByDefault; }) return L::kTrainingByDefault;
    return false;
  }

  bool computes_in_float32() const override {
    return requires { L::kComputesInFloat32; };
  }

  bool keeps_types() const override {
    return requires { L::kKeepsTypes; };
  }

  std::shared_ptr<const Any> Called(CallVisitor& visitor) const override {
    auto copy = std::make_shared<Holder>(layer);
    if constexpr (requires { copy->layer.CallArguments(visitor); })
      copy->layer.CallArguments(visitor);
    return copy;
  }

  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const override {
    if constexpr (requires { layer.OutputTypes(in); }) {
      return layer.OutputTypes(in);
    } else {
      RETURN_IF_ERROR(ExpectOneInput(in, requires { L::kAnyDType; }));
      ASSIGN_OR_RETURN(Shape shape, layer.OutputShape(in[0].shape));
      return std::vector{TensorType{in[0].dtype, std::move(shape)}};
    }
  }

  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const override {
    if constexpr (requires { layer.Variables(in); }) {
      return layer.Variables(in);
    } else if constexpr (requires { layer.Variables(in[0].shape); }) {
      return layer.Variables(in[0].shape);
    } else {
      return {};
    }
  }

  std::vector<graph::Output> Apply(LayerCall& call) const override {
    if constexpr (std::is_same_v<decltype(layer.Apply(call)), std::vector<graph::Output>>) {
      return layer.Apply(call);
    } else {
      return {layer.Apply(call)};
    }
  }

  bool supports_masking() const override {
    return requires { L::kSupportsMasking; };
  }

  L layer;
};

}  // namespace tfjob::model
