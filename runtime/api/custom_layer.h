// Defines layers that a program composes from operations and variables.
//
//   // y = x · kernel + bias, as Dense computes it.
//   CustomLayer affine = {
//       .variables = {{.name = "kernel", .shape = {784, 128}},
//                     {.name = "bias", .shape = {128}, .initializer = "zeros"}},
//       .call = [](const std::vector<Symbol>& in, const std::vector<Symbol>& variables) {
//         return ops::Matmul(in[0], variables[0]) + variables[1];
//       }};
//   Model model = Sequential({Input{.shape = {784}}, affine, Dense{.units = 10}});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "layer.h"

namespace tfjob::api {

// A float32 variable of a CustomLayer.
struct LayerVariable {
  std::string name = {};  // letters, digits and '_'; unique in the layer
  std::vector<int64_t> shape = {};
  Named initializer = "glorot_uniform";
  Named regularizer = {};
  Named constraint = {};
  bool trainable = true;  // if false, training does not change the variable
};

// A layer that the program defines. Conversion to a Layer calls `call` once, to record the
// operations that compute the output. `call` may use only operations (ops.h); to combine whole
// layers, use a Model as a layer. Inputs and results have the batch as their first axis, but
// variables do not; operands of different ranks are broadcast as in NumPy. Each example must be
// computed separately, so results that depend on an input must keep the batch as their first axis.
//
// Weights are saved and loaded like those of other layers, and Model::Load reads files of models
// with such layers, but Keras can read only the weights.
struct CustomLayer {
  std::vector<LayerVariable> variables = {};
  std::function<Symbol(const std::vector<Symbol>& inputs, const std::vector<Symbol>& variables)>
      call = {};
  int inputs = 1;  // the number of inputs
  std::string name = {};
  bool trainable = true;

  operator Layer() const;
  // Calls the layer. The number of `arguments` replaces `inputs`.
  Symbol operator()(const Symbols& arguments) && {
    inputs = static_cast<int>(arguments.values().size());
    return Layer(*this)(arguments);
  }
  Symbol operator()(const Symbols& arguments) const& = delete;  // assign it to a Layer, call that
};

}  // namespace tfjob::api
