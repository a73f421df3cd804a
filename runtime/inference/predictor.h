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

// Returns the names by which users refer to the inputs: the names of the model's input layers. If
// there is only one input, OrderInputs also accepts its name in InputNames (model.h).
std::vector<std::string> NamesOfInputs(const model::Model& model);

// Puts the arrays in the order of the model's inputs. An array without a name is only valid for a
// model with a single input. Returns InvalidArgument if an array does not belong to an input, if
// two arrays belong to the same input, or if an input has no array; the message names the input or
// the array.
StatusOr<std::vector<Tensor>> OrderInputs(const model::Model& model,
                                          const io::NamedTensors& arrays);

// Returns the type of one example of each input. A shape or length that the model does not state is
// that of the array. If there are no arrays, unstated lengths get sample values. An input whose
// dtype the model does not state is float32. Returns InvalidArgument, with a message that names the
// input, if a shape cannot be determined.
StatusOr<std::vector<model::TensorType>> FeaturesOf(const model::Model& model,
                                                    std::span<const Tensor> inputs);

struct RunOptions {
  int64_t batch_size = 32;
  // The factor by which all float32 inputs are multiplied, like the key data.train.scale.
  float scale = 1;
};

// Computes outputs of one model. Not thread-safe: only one thread may use a Predictor.
class Predictor {
 public:
  // Creates a predictor. `values` contains the values of the model's variables for inputs of these
  // types, in the order of Variables (model.h). The device's pool must outlive the predictor.
  static StatusOr<std::unique_ptr<Predictor>> Create(const model::Model& model,
                                                     std::vector<model::TensorType> features,
                                                     std::span<const Tensor> values,
                                                     const exec::Device& device);
  ~Predictor();

  // Returns the outputs, with the names that OutputNames (model.h) returns. `inputs` must be in the
  // order of the model's inputs, with the examples along the first axis. As in Keras, a last axis
  // of length 1 may be missing from an array or from the model. Converts all numbers to the types
  // of the inputs; converting to an integer type must not change the value of a number. Returns
  // InvalidArgument if the arrays are incompatible with the model, or have different numbers of
  // examples; ResourceExhausted if the outputs would require more memory than the machine has; and
  // Cancelled if `stop` is requested before the last batch.
  StatusOr<io::NamedTensors> Run(std::span<const Tensor> inputs, const RunOptions& options,
                                 const StopSource& stop);

  // Returns zeros for the outputs of this many examples, with the names that OutputNames returns.
  // Returns ResourceExhausted if they would require more memory than the machine has.
  StatusOr<io::NamedTensors> Outputs(int64_t examples) const;
  // Computes the outputs of a batch, and stores them in `outputs` from example `first` on. Converts
  // nothing: the tensors of the batch must have the types of the inputs.
  Status RunBatch(std::span<const Tensor> batch, int64_t first, io::NamedTensors& outputs);

 private:
  struct State;
  explicit Predictor(std::unique_ptr<State> state);
  StatusOr<std::vector<Tensor>> Prepared(std::span<const Tensor> inputs, float scale) const;

  const std::unique_ptr<State> state_;
};

}  // namespace tfjob::inference
