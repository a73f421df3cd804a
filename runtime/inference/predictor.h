// Computes the outputs of a model for arrays of examples, batch by batch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/stop.h"
#include "runtime/exec/device.h"
#include "runtime/io/safetensors.h"
#include "runtime/model/model.h"

namespace tfjob::inference {

// Returns the user-visible names of the inputs: those of the model's input layers. The only input
// of a model may also be given by its name in InputNames (model.h).
std::vector<std::string> NamesOfInputs(const model::Model& model);

// Puts the arrays in the order of the model's inputs. An array without a name belongs to the only
// input. Returns InvalidArgument, with a message that names the input or the array, if an array
// belongs to no input, if two belong to the same input, or if an input has no array.
StatusOr<std::vector<Tensor>> OrderInputs(const model::Model& model,
                                          const io::NamedTensors& arrays);

// Returns, for each input, the type of one example. A shape or length that the model does not state
// is taken from the array. Without arrays, an unstated length gets a sample value. Returns
// InvalidArgument, with a message that names the input, if a shape is still unknown. An input whose
// dtype the model does not state is float32.
StatusOr<std::vector<model::TensorType>> FeaturesOf(const model::Model& model,
                                                    std::span<const Tensor> inputs);

struct RunOptions {
  int64_t batch_size = 32;
  // The factor by which all float32 inputs are multiplied, like data.train.scale.
  float scale = 1;
};

// Owned by one thread.
class Predictor {
 public:
  // `values` contains the values of the model's variables for inputs of these types, in the order
  // of Variables (model.h). The device's pool must outlive the predictor.
  static StatusOr<std::unique_ptr<Predictor>> Create(const model::Model& model,
                                                     std::vector<model::TensorType> features,
                                                     std::span<const Tensor> values,
                                                     const exec::Device& device);
  ~Predictor();

  // Returns the outputs, with the names of OutputNames (model.h). `inputs` are in the order of the
  // model's inputs, and have the examples along their first axis; as in Keras, a last axis of
  // length 1 may be missing from an input or from the model. The inputs' numbers are converted to
  // the types of the inputs; a number that is converted to an integer type must keep its value.
  // Returns InvalidArgument if the inputs are incompatible with the model or have different numbers
  // of examples, ResourceExhausted if the outputs would take more memory than the machine has, and
  // Cancelled if `stop` is requested before the last batch.
  StatusOr<io::NamedTensors> Run(std::span<const Tensor> inputs, const RunOptions& options,
                                 const StopSource& stop);

 private:
  struct State;
  explicit Predictor(std::unique_ptr<State> state);
  StatusOr<std::vector<Tensor>> Prepared(std::span<const Tensor> inputs, float scale) const;
  StatusOr<io::NamedTensors> Outputs(int64_t examples) const;

  const std::unique_ptr<State> state_;
};

}  // namespace tfjob::inference
