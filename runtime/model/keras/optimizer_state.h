// Reads and writes the state of an optimizer in Keras' files.
//
// Keras stores an optimizer as a list of variables: the number of steps, the learning rate unless
// there is a schedule, the averages of all variables (use_ema), the accumulated gradients of all
// variables, and the optimizer's own slots. Slots that an optimizer creates together are
// interleaved: the momentum and the velocity of the first variable, those of the second, …
// Sources: keras/src/optimizers (build), keras/src/saving/saving_lib.py.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/model.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::keras {

// A variable of an optimizer of Keras.
struct OptimizerVariable {
  enum class Kind {
    kIterations,    // int64 scalar
    kLearningRate,  // float32 scalar
    kSlot,
    kMomentumProduct,  // float32 scalar, for Nadam: u_1 u_2 … (optimizer.h)
  };
  Kind kind = Kind::kSlot;
  size_t variable = 0;  // kSlot: the index of the trained variable
  std::string slot;     // kSlot: the name in optimizer::Slot

  bool operator==(const OptimizerVariable&) const = default;
};

// Returns the variables in Keras' order. `trained` is the number of variables that the optimizer
// updates.
std::vector<OptimizerVariable> OptimizerVariables(const optimizer::Optimizer& optimizer,
                                                  size_t trained);

// Returns a unique name of a variable of the optimizer: "iteration", "dense/kernel/momentum".
// `trained` contains the names of the trained variables.
std::string NameOfVariable(const OptimizerVariable& variable, std::span<const std::string> trained);

// Returns the names of the trained variables in Keras' order.
std::vector<std::string> TrainedVariables(const model::Model& model,
                                          std::span<const model::VariableSpec> variables);

struct OptimizerState {
  int64_t iterations = 0;  // steps that the optimizer has taken
  // The values of the slots, by variable name and then by slot name. Empty if the optimizer has
  // created no slots.
  std::map<std::string, std::map<std::string, Tensor>> slots;
};

// Reads the state of `optimizer` from a .keras or .h5 file, or from weights of Keras 3
// (NAME.weights.h5). `model` must be the model in the file or, if the file contains only weights,
// the model to which they belong. Returns InvalidArgument if the file contains no optimizer state,
// or if the variables show that the state belongs to another optimizer or model.
StatusOr<OptimizerState> ReadOptimizerState(const std::string& path, const model::Model& model,
                                            std::span<const model::VariableSpec> variables,
                                            const optimizer::Optimizer& optimizer);

// Returns the values of the optimizer's variables, in the order of OptimizerVariables. `trained`
// contains the names of the trained variables in Keras' order; `state` must contain all of their
// slots.
std::vector<Tensor> ValuesOf(const OptimizerState& state, const optimizer::Optimizer& optimizer,
                             std::span<const std::string> trained);

}  // namespace tfjob::keras
