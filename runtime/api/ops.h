// Defines operations on values: arithmetic, and functions of keras.ops.
//
//   Symbol x = Input{.shape = {8}};
//   Symbol scaled = 2 * x + 1;
//   Symbol unit = x / ops::Sqrt(ops::Sum(ops::Square(x), {-1}, true));
//
// Functional models can contain operations (Keras reads and writes them as its own), and so can the
// steps and losses that a program defines. Axis 0 is the batch. In a model, the first axis of every
// result must be the batch; a step may also reduce the batch axis. Errors, such as mismatched
// shapes, are returned by the model or the function that uses the value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layer.h"

namespace tfjob::api {

// A value, or a finite number. The absolute value of an integer must be less than 2^53.
class Operand {
 public:
  Operand(const Symbol& symbol) : symbol_(symbol) {}                                 // NOLINT
  Operand(double number) : number_(number) {}                                        // NOLINT
  Operand(float number) : number_(number) {}                                         // NOLINT
  Operand(int number) : Operand(int64_t{number}) {}                                  // NOLINT
  Operand(int64_t number) : number_(static_cast<double>(number)), integer_(true) {}  // NOLINT

  const std::optional<Symbol>& symbol() const { return symbol_; }
  double number() const { return number_; }
  bool integer() const { return integer_; }  // the number was given as an integer

 private:
  std::optional<Symbol> symbol_;
  double number_ = 0;
  bool integer_ = false;
};

// Elementwise operations, with broadcasting as in NumPy. At least one operand must be a value. In a
// model, both values must have the same rank. In a step, a value with fewer axes than the other
// must not have one row per example, because its rows would be matched with the columns of the
// other value.
Symbol operator+(const Operand& x, const Operand& y);
Symbol operator-(const Operand& x, const Operand& y);
Symbol operator*(const Operand& x, const Operand& y);
Symbol operator/(const Operand& x, const Operand& y);
Symbol operator-(const Symbol& x);
// Comparisons return bool values. Use ops::Equal and ops::NotEqual for == and !=.
Symbol operator<(const Operand& x, const Operand& y);
Symbol operator<=(const Operand& x, const Operand& y);
Symbol operator>(const Operand& x, const Operand& y);
Symbol operator>=(const Operand& x, const Operand& y);

namespace ops {

// ---- elementwise

Symbol Power(const Operand& x, const Operand& y);
Symbol Maximum(const Operand& x, const Operand& y);
Symbol Minimum(const Operand& x, const Operand& y);
Symbol Equal(const Operand& x, const Operand& y);
Symbol NotEqual(const Operand& x, const Operand& y);
Symbol LogicalAnd(const Operand& x, const Operand& y);
Symbol LogicalOr(const Operand& x, const Operand& y);
Symbol LogicalNot(const Symbol& x);
Symbol Where(const Symbol& condition, const Operand& x, const Operand& y);  // condition ? x : y
Symbol Abs(const Symbol& x);
Symbol Exp(const Symbol& x);
Symbol Log(const Symbol& x);
Symbol Sqrt(const Symbol& x);
Symbol Rsqrt(const Symbol& x);  // 1 / sqrt(x)
Symbol Square(const Symbol& x);
Symbol Sin(const Symbol& x);
Symbol Cos(const Symbol& x);
Symbol Erf(const Symbol& x);
Symbol Clip(const Symbol& x, double low, double high);
Symbol Cast(const Symbol& x, const std::string& dtype);  // "float32"
Symbol ZerosLike(const Symbol& x);
Symbol OnesLike(const Symbol& x);

// ---- activations

Symbol Relu(const Symbol& x);
Symbol LeakyRelu(const Symbol& x, double negative_slope = 0.2);
Symbol Sigmoid(const Symbol& x);
Symbol LogSigmoid(const Symbol& x);
Symbol Tanh(const Symbol& x);
Symbol Softplus(const Symbol& x);
Symbol Silu(const Symbol& x);
Symbol Gelu(const Symbol& x, bool approximate = true);
Symbol Elu(const Symbol& x, double alpha = 1);
// The next two functions work along one axis, which must not be the batch.
Symbol Softmax(const Symbol& x, int64_t axis = -1);
Symbol LogSoftmax(const Symbol& x, int64_t axis = -1);

// ---- reductions: over all axes if `axes` is empty

Symbol Sum(const Symbol& x, const std::vector<int64_t>& axes = {}, bool keepdims = false);
Symbol Mean(const Symbol& x, const std::vector<int64_t>& axes = {}, bool keepdims = false);
Symbol Max(const Symbol& x, const std::vector<int64_t>& axes = {}, bool keepdims = false);
Symbol Min(const Symbol& x, const std::vector<int64_t>& axes = {}, bool keepdims = false);
Symbol Var(const Symbol& x, const std::vector<int64_t>& axes = {}, bool keepdims = false);
Symbol Std(const Symbol& x, const std::vector<int64_t>& axes = {}, bool keepdims = false);
Symbol LogSumExp(const Symbol& x, const std::vector<int64_t>& axes = {}, bool keepdims = false);
Symbol Argmax(const Symbol& x, int64_t axis = -1);  // int32

// ---- shapes

// One length may be -1. In a model, only the first length, which is that of the batch, may be -1.
Symbol Reshape(const Symbol& x, const std::vector<int64_t>& shape);
Symbol Transpose(const Symbol& x, const std::vector<int64_t>& axes);
Symbol ExpandDims(const Symbol& x, int64_t axis);
Symbol Squeeze(const Symbol& x, const std::vector<int64_t>& axes);
Symbol Concatenate(const std::vector<Symbol>& xs, int64_t axis = -1);
Symbol Stack(const std::vector<Symbol>& xs, int64_t axis);
Symbol Flip(const Symbol& x, const std::vector<int64_t>& axes);
Symbol OneHot(const Symbol& x, int64_t num_classes, int64_t axis = -1);

// One part of a key for GetItem: `i`, `start:stop:step`, `...` or `None` in Python.
class Key {
 public:
  enum class Kind { kIndex, kRange, kEllipsis, kNewAxis };

  Key(int64_t index) : kind_(Kind::kIndex), index_(index) {}  // NOLINT
  Key(int index) : Key(int64_t{index}) {}                     // NOLINT
  static Key All() { return Range({}, {}); }
  static Key Range(std::optional<int64_t> start, std::optional<int64_t> stop,
                   std::optional<int64_t> step = {});
  static Key Ellipsis();
  static Key NewAxis();

  Kind kind() const { return kind_; }
  int64_t index() const { return index_; }
  const std::optional<int64_t>& start() const { return start_; }
  const std::optional<int64_t>& stop() const { return stop_; }
  const std::optional<int64_t>& step() const { return step_; }

 private:
  Kind kind_;
  int64_t index_ = 0;
  std::optional<int64_t> start_, stop_, step_;
};
// Returns x[key]. The key must select the whole batch, so it must start with Key::All() or an
// ellipsis.
Symbol GetItem(const Symbol& x, const std::vector<Key>& key);

// ---- products

Symbol Matmul(const Symbol& x, const Symbol& y);  // matrix product over the last two axes
Symbol Einsum(const std::string& subscripts, const Symbol& x, const Symbol& y);  // "ij,ik->ijk"

}  // namespace ops
}  // namespace tfjob::api
