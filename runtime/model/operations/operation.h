// Defines the functions of keras.ops that a functional model applies to its values, such as x + y
// or x[:, 0]. Keras writes each function as a layer whose class has the name of the function.
#pragma once

#include <optional>
#include <string>

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

struct OperationKind;  // operation_table.h

// Represents a function with its arguments. The function operates on values that include the batch
// axis, which must also be the first axis of the results.
struct Operation {
  static constexpr std::string_view kClass = "Operation";
  static constexpr bool kKeepsTypes = true;
  const OperationKind* kind = nullptr;  // never null
  // The arguments. Each function uses only some of them.
  std::vector<int64_t> axes;
  int64_t axis = -1, axis1 = 0, axis2 = 0;
  bool keepdims = false;
  std::vector<int64_t> newshape;
  int64_t sections = 1;
  DType dtype = DType::kFloat32;
  std::string type_name;                // the function's default if empty
  double low = 0, high = 0;             // for Clip
  double slope = 0.2;                   // for LeakyRelu
  double alpha = 1;                     // for Elu and Celu
  double b = 4;                         // for Squareplus
  double threshold = 0.5;               // for HardShrink, SoftShrink and Threshold
  double default_value = 0;             // for Threshold
  bool approximate = true;              // for Gelu
  std::optional<double> epsilon;        // for Normalize
  int64_t order = 2;                    // for Normalize
  std::optional<double> order_of_norm;  // for Norm; null: 2
  int64_t decimals = 0;                 // for Round
  std::vector<int64_t> indices;         // for Split; empty: into `sections` equal parts
  int64_t count = 1;                    // num_classes of OneHot, repeats of Repeat, shift of Roll
  std::vector<int64_t> repeats;         // for Tile
  std::vector<int64_t> source, destination;  // for Moveaxis
  std::vector<int64_t> margins;  // for Pad: numbers before and after each axis, or one for all
  std::string subscripts;        // for Einsum
  // The arguments of a call.
  std::vector<CallOperand> operands;
  std::vector<int> list;
  std::vector<KeyPart> key;

  std::string_view class_name() const;
  std::string_view module() const;  // "keras.src.ops.numpy"
  void Arguments(ArgumentVisitor& visitor);
  void CallArguments(CallVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
  // Like Apply, but for whole arrays, which need not have one row per example. Elementwise
  // functions also broadcast arrays of different ranks, like NumPy.
  std::vector<graph::Output> ApplyToArrays(LayerCall& call) const;
  // Returns whether the function is an elementwise function of several arrays.
  bool broadcasts() const;
};

// Returns the class names of all functions.
std::vector<std::string> OperationClasses();
// Returns an operation of this class, or nullopt if there is no such class. `module` is the Keras
// module that defines the class; only the last part of the module's name is used.
std::optional<Operation> MakeOperation(std::string_view module, std::string_view class_name);

}  // namespace tfjob::model::layers
