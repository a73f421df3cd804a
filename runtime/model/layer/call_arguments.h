// Defines how a layer lists the arguments of its calls in a functional model. Such a layer has a
// function CallArguments(visitor), which names each argument, in the order of Keras' call(), and
// the member that holds it. Reading and writing calls are visitors, so they cannot disagree. A
// layer without this function takes only its inputs, as one list.
//
// A tensor among the arguments is stored as its index in the inputs of the call.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tfjob::model {

// Stands for a tensor that is not given.
inline constexpr int kNoInput = -1;

// A tensor of the model, a number, or an array of numbers.
struct CallOperand {
  int input = kNoInput;  // the tensor; kNoInput for numbers
  double number = 0;
  bool integer = false;       // the numbers were written as integers
  std::vector<double> array;  // for an array: its numbers, in row-major order; otherwise empty
  std::vector<int64_t> dims;  // of the array
};

// A part of a key such as [:, 1, ..., None].
struct KeyPart {
  enum class Kind { kIndex, kSlice, kEllipsis, kNewAxis };
  Kind kind = Kind::kSlice;
  int64_t index = 0;
  std::optional<int64_t> start = {}, stop = {}, step = {};
};

class CallVisitor {
 public:
  virtual ~CallVisitor() = default;

  // A tensor, which must be given if `required` is set.
  virtual void Input(std::string_view name, int& index, bool required = false) = 0;
  // The first argument, a tensor. In files of tf.keras 2, it may be a list of the tensor and the
  // elements of a later argument, which are stored in `rest`.
  virtual void First(std::string_view name, int& index, std::vector<int>& rest) = 0;
  // A list of tensors, or a single one. Elements may be kNoInput. If `required` is set, there must
  // be at least one element, and none may be kNoInput.
  virtual void Inputs(std::string_view name, std::vector<int>& indices, bool required = false) = 0;
  // True or false; false if it is absent.
  virtual void Flag(std::string_view name, bool& value) = 0;
  // A tensor, a number, or an array that Keras writes as __tensor__ or __numpy__.
  virtual void Operand(std::string_view name, CallOperand& value) = 0;
  virtual void Key(std::string_view name, std::vector<KeyPart>& parts) = 0;
  // An argument that has a position but is supported only with its default value.
  virtual void Unsupported(std::string_view name) = 0;
};

}  // namespace tfjob::model
