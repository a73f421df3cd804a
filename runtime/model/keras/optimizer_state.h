// Reads and writes the state of an optimizer in Keras' files.
//
// Keras stores an optimizer as a list of variables: the number of steps, the learning rate (unless
// there is a schedule), the averages of all variables (use_ema), the accumulated gradients of all
// variables, and the slots of the optimizer's kind. Slots that an optimizer creates together are
// interleaved: the momentum and the velocity of the first variable, then those of the second
// variable, and so on. Sources: keras/src/optimizers (build), keras/src/saving/saving_lib.py.
//
// A LossScaleOptimizer stores four variables before those of the optimizer inside it: a number of
// steps, a learning rate (both unused), the number of steps since the scale last changed, and the
// scale. A .keras file stores the variables of the inner optimizer again in a group of their own.
//
// tf.keras 2 does not save the learning rate as a variable, and nothing of its loss scale. Its
// legacy optimizers save their variables only in .h5 files, under other names and in another order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/model/keras/weights.h"
#include "runtime/model/model.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::keras {

// Identifies a variable of a Keras optimizer.
struct OptimizerVariable {
  enum class Kind {
    kIterations,    // int64 scalar
    kLearningRate,  // float32 scalar
    kSlot,
    kMomentumProduct,  // float32 scalar, for Nadam: u_1 u_2 … (optimizer.h)
  };
  Kind kind = Kind::kSlot;
  size_t variable = 0;  // kSlot: the index of the trained variable
  std::string slot;     // kSlot: optimizer::Slot::name

  bool operator==(const OptimizerVariable&) const = default;
};

// Returns the optimizer's variables in Keras' order. `trained` is the number of model variables
// that the optimizer updates.
std::vector<OptimizerVariable> OptimizerVariables(const optimizer::Optimizer& optimizer,
                                                  size_t trained);

// Returns a unique name for a variable of the optimizer, such as "iteration" or
// "dense/kernel/momentum". `trained` contains the names of the trained variables.
std::string NameOfVariable(const OptimizerVariable& variable, std::span<const std::string> trained);

// Returns the names of the trained variables in Keras' order.
std::vector<std::string> TrainedVariables(const model::Model& model,
                                          std::span<const model::VariableSpec> variables);

// The state of a LossScaleOptimizer.
struct StoredLossScale {
  double scale = 0;
  int64_t good_steps = 0;  // since the scale last changed
};

// A slot that stays in the file.
struct StreamedSlot {
  DType dtype = DType::kFloat32;
  Shape shape;
  PieceReader read;
};

struct OptimizerState {
  int64_t iterations = 0;  // number of steps that the optimizer has completed
  // The values of the slots: a map from variable names to maps from slot names to values. Empty if
  // the optimizer has not created any slots.
  std::map<std::string, std::map<std::string, Tensor>> slots;
  // The slots of the variables that are to be streamed.
  std::map<std::string, std::map<std::string, StreamedSlot>> streamed = {};
  // Set if the optimizer is inside a LossScaleOptimizer that has completed a step.
  std::optional<StoredLossScale> loss_scale = {};
};

// Reads the state of `optimizer` from a .keras or .h5 file, or from a weights file of Keras 3
// (NAME.weights.h5). `model` must be the model in the file or, if the file contains only weights,
// the model that the weights belong to. Returns InvalidArgument if the file contains no optimizer
// state, or if the stored variables do not match the optimizer and the model. A compiled .h5 file
// of tf.keras 2 that contains no state was not trained, so its state has 0 steps and no slots. The
// slots of the variables whose names are in `streamed` are not loaded into memory.
StatusOr<OptimizerState> ReadOptimizerState(const std::string& path, const model::Model& model,
                                            std::span<const model::VariableSpec> variables,
                                            const optimizer::Optimizer& optimizer,
                                            const std::set<std::string>& streamed = {});

// Names the variables that a LossScaleOptimizer stores before those of the inner optimizer.
inline constexpr const char* kLossScaleVariables[] = {"iteration", "learning_rate", "step_counter",
                                                      "dynamic_scale"};
// Returns the values of these variables.
std::vector<Tensor> LossScaleValues(const StoredLossScale& loss_scale);

// Returns the values of the optimizer's variables, in the order of OptimizerVariables. `trained`
// contains the names of the trained variables in Keras' order. `state` must contain all slots of
// these variables.
std::vector<Tensor> ValuesOf(const OptimizerState& state, const optimizer::Optimizer& optimizer,
                             std::span<const std::string> trained);

}  // namespace tfjob::keras
