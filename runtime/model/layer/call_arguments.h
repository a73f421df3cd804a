// Defines how a layer class lists the arguments of its calls in a functional model. The class has a
// function CallArguments(visitor), which passes the name of each argument, in the order of Keras'
// call(), and the member that stores its value to a visitor. There are visitors that read and write
// calls; because both use this function, they cannot disagree. A class without this function
// accepts only inputs, as one list.
//
// If an argument is a tensor, the member stores the tensor's index in the inputs of the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tfjob::model {

// Represents an absent tensor.
inline constexpr int kNoInput = -1;

// Represents an operand: a tensor of the model, a number, or an array of numbers.
struct CallOperand {
  int input = kNoInput;  // the tensor; kNoInput for a number or an array
  double number = 0;
  bool integer = false;       // whether the file contains integers
  std::vector<double> array;  // for an array: its numbers, in row-major order; otherwise empty
  std::vector<int64_t> dims;  // dimensions of the array
};

// Represents one part of a key such as [:, 1, ..., None].
struct KeyPart {
  enum class Kind { kIndex, kSlice, kEllipsis, kNewAxis };
  Kind kind = Kind::kSlice;
  int64_t index = 0;
  std::optional<int64_t> start = {}, stop = {}, step = {};
};

// Visits the arguments of a call, one per function call. The comments describe the form in files.
class CallVisitor {
 public:
  virtual ~CallVisitor() = default;

  // A tensor, which must be present if `required` is set.
  virtual void Input(std::string_view name, int& index, bool required = false) = 0;
  // The first argument, a tensor. In files of tf.keras 2, this may be a list that contains the
  // tensor and then the elements of a later argument, which are stored in `rest`.
  virtual void First(std::string_view name, int& index, std::vector<int>& rest) = 0;
  // A list of tensors, or a single tensor. Elements may be kNoInput. If `required` is set, there
  // must be at least one element, and none may be kNoInput.
  virtual void Inputs(std::string_view name, std::vector<int>& indices, bool required = false) = 0;
  // True or false. An absent argument is false.
  virtual void Flag(std::string_view name, bool& value) = 0;
  // A tensor, a number, or an array: nested lists of numbers, which Keras may write as __tensor__
  // or __numpy__.
  virtual void Operand(std::string_view name, CallOperand& value) = 0;
  virtual void Key(std::string_view name, std::vector<KeyPart>& parts) = 0;
  // An argument that has a position but is supported only with its default value.
  virtual void Unsupported(std::string_view name) = 0;
};

}  // namespace tfjob::model
