// Represents a layer of any class as a value. Each class is a struct with the arguments of the
// Keras layer of the same name (keras.io/api/layers). model/layers has one file per family of
// classes; model/layer_table.h lists all classes.
//
// Every class has these members:
//   kClass              the Keras class name; or class_name(), if the name differs between layers
//   Arguments(visitor)  lists the arguments of the layer (argument_visitor.h)
//   Apply(call)         appends the layer's ops to the graph, and returns one Output or a list
// and one of the following, which return InvalidArgument if the inputs are not valid:
//   OutputShape(in)     for a class with one input and one output of the same float type: returns
//                       the shape of the output, given the shape of the input
//   OutputTypes(in)     for any other class: returns the output types, given the input types
// A class with variables also has:
//   Variables(in)       returns the variables in Keras' order, named without the layer's name
//                       ("kernel"). `in` is the same as for OutputShape or OutputTypes
// Optional members:
//   kAnyDType = true    for a class with OutputShape that accepts values of any type
//   kSupportsMasking = true
//                       for a class whose first output has the mask of the first input, unless
//                       Apply sets the masks. The outputs of all other classes have no masks
//   kTakesMask = true   for a class without CallArguments whose calls have the argument `mask`, the
//                       masks of the inputs
//   kTrainingByDefault = true
//                       for a class without CallArguments whose call() in Keras has the default
//                       training=True; Keras 3 writes this argument to files
//   kComputesInFloat32 = true
//                       for a class that computes in float32 even if the dtype policy of the layer
//                       specifies a half type (model/apply_layer.h)
//   kKeepsTypes = true  for a class whose inputs and variables are never cast according to the
//                       layer's policy: an input, a function, or a class whose inner layers have
//                       policies
//   CallArguments(visitor)
//                       lists the arguments of a call (call_arguments.h), for a class whose calls
//                       have arguments besides the inputs
//
// All shapes and types are for one example: they do not include the batch axis. Any number of
// threads may call the methods of a layer at the same time.
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

// Describes a variable of a model. Its name is the name in checkpoints of TensorFlow and Keras:
// "dense_1/kernel".
struct VariableSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Initializer initializer;
  bool trainable = true;
  WeightRules rules = {};
  // Whether `trainable` is false only because of Layer::frozen_from_outside. In Keras' older
  // format, such a variable is ordered as if it were trainable.
  bool frozen_from_outside = false;
  // Whether training may assign values to the variable in each step, as BatchNormalization does.
  bool assigned = false;
  // Whether the variable is frozen by its name (Model::frozen). Training does not change such a
  // variable, even if `trainable` is true. The other flags still describe the layer, as files do.
  bool frozen_by_name = false;

  // Returns whether the optimizer updates the variable.
  bool trained() const { return trainable && !frozen_by_name; }

  // Updates the flags according to the flags of a layer that contains the variable (Layer in
  // model.h).
  void InLayer(bool layer_trainable, bool layer_frozen_from_outside) {
    const bool in_file =
        (trainable || frozen_from_outside) && (layer_trainable || layer_frozen_from_outside);
    trainable = trainable && layer_trainable;
    frozen_from_outside = in_file && !trainable;
  }
};

// Contains the arguments of Apply: the graph, the inputs, the masks and the variables. Apply adds
// elements to `assignments` and `penalties`, and may set `output_masks`.
//
// As in Keras, a value may have a mask: a bool tensor [batch, steps], which is false for the steps
// that layers should skip. An invalid Output means that there is no mask.
struct LayerCall {
  graph::Builder& b;
  std::vector<graph::Output> inputs = {};     // [batch, …]
  std::vector<graph::Output> masks = {};      // one per input; may be empty if there are no masks
  std::vector<graph::Output> variables = {};  // in the order of Variables()
  bool training = false;
  bool trainable = true;               // false: the layer is frozen
  graph::Output step = {}, seed = {};  // int64 scalars; valid if training
  int64_t replica = 0;                 // makes random numbers differ between tasks

  struct Assignment {
    size_t variable = 0;  // index in `variables`
    graph::Output value;
  };
  // Set by the layer: the changes that a training step makes to variables without gradients.
  std::vector<Assignment> assignments = {};
  // Set by the layer: the masks of its outputs. If there are fewer masks than outputs, the
  // remaining outputs have no mask. See kSupportsMasking.
  std::optional<std::vector<graph::Output>> output_masks = {};
  // Set by the layer: scalars that are added to the loss in training and evaluation.
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

// ExampleOf removes the batch axis from a shape; Batched adds the batch axis.
Shape ExampleOf(const Shape& batched);
Shape Batched(int64_t batch_size, const Shape& example);

// Stores a layer of any class. The layer is immutable, and is shared by all copies of this object.
class LayerConfig {
 public:
  template <typename L>
    requires requires { L::kClass; }
  LayerConfig(L layer)  // NOLINT: a layer of any class is a layer
      : held_(std::make_shared<Holder<L>>(std::move(layer))) {}

  std::string_view class_name() const { return held_->class_name(); }
  // Returns the layer if its class is L, and null otherwise.
  template <typename L>
  const L* As() const {
    const auto* holder = dynamic_cast<const Holder<L>*>(held_.get());
    return holder == nullptr ? nullptr : &holder->layer;
  }

  // Returns a copy of the layer whose arguments the visitor has visited, and perhaps changed.
  LayerConfig Visited(ArgumentVisitor& visitor) const {
    return LayerConfig(held_->Visited(visitor));
  }
  // Returns whether a call has arguments besides its inputs.
  bool takes_arguments() const { return held_->takes_arguments(); }
  // Returns whether a call has the argument `mask`, the masks of its inputs.
  bool takes_mask() const { return held_->takes_mask(); }
  // Returns whether, in Keras, training=True is the default of the layer's call().
  bool training_by_default() const { return held_->training_by_default(); }
  bool computes_in_float32() const { return held_->computes_in_float32(); }
  bool keeps_types() const { return held_->keeps_types(); }
  // Returns a copy of the layer whose call arguments the visitor has visited, and perhaps set.
  LayerConfig Called(CallVisitor& visitor) const { return LayerConfig(held_->Called(visitor)); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const {
    return held_->OutputTypes(in);
  }
  // Returns the variables. OutputTypes must accept the inputs.
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const {
    return held_->Variables(in);
  }
  // Appends the layer's ops. OutputTypes must accept the types of the inputs. Sets the masks of all
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

// Returns InvalidArgument unless there is exactly one input. The input must have a float type,
// unless `any_dtype` is set.
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
