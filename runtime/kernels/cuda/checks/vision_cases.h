// Lists convolutions and batch normalisations for comparisons.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/checks/comparison.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cuda {

struct ConvolutionCase {
  Shape image;  // [images,height,width,channels]
  Window window;
  int64_t outputs = 1, groups = 1;

  Shape filter() const;
  Shape output() const;
  Attributes attributes() const;
};

// Draws a case with this many channels and outputs per group.
ConvolutionCase DrawConvolution(PhiloxStream& random, int64_t groups, int64_t depth,
                                int64_t outputs);
// Returns the ops of a case: Conv2D, its gradients, and FusedConv2D with each combination of bias
// and activation.
std::vector<Comparison> ConvolutionsOf(const ConvolutionCase& c);

// Return batch normalisations, and their gradients, with all combinations of an activation, a side
// input and, for the gradients, a second tensor.
std::vector<Comparison> NormsOf(const Shape& shape, double low, double high);
std::vector<Comparison> NormGradientsOf(const Shape& shape);

}  // namespace tfjob::kernels::cuda
