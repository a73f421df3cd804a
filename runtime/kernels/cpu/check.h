// Tests kernels of this package: runs an op in every way that its contract allows, and compares the
// results with the expected values.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cpu {

struct Case {
  std::string op;
  Attributes attributes;
  std::vector<Tensor> inputs;
  std::vector<Tensor> expected;
  // The largest allowed error, relative to max(1, |expected|). For float64, a thousandth of this
  // value is allowed.
  double tolerance = 1e-6;
};

// Runs the op with dense and with padded rows, with one thread and with three threads, and with
// each permitted rule for sharing memory between inputs and outputs. The padding of float operands
// contains NaN, which must not affect the results. Compares all results with `expected`, and
// reports differences through gtest.
void Check(const Case& test);

// Prepares the op for these operands, and returns the status.
Status PrepareError(const std::string& op, const Attributes& attributes,
                    std::vector<Operand> inputs, std::vector<Operand> outputs);

// Returns values in [low, high] that depend only on the arguments.
Tensor Values(DType dtype, const Shape& shape, int seed, double low = -3, double high = 3);

double ValueAt(const Tensor& tensor, int64_t i);
void SetValue(Tensor& tensor, int64_t i, double value);

// Returns a tensor with the shape of the first input. Each element is f, applied to the elements of
// all inputs at the same index.
Tensor Elementwise(DType dtype, const std::vector<Tensor>& inputs,
                   const std::function<double(const std::vector<double>&)>& f);

}  // namespace tfjob::kernels::cpu
