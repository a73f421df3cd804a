// Finds a model's variables in an HDF5 file of Keras. Private to this package.
#pragma once

#include <memory>
#include <span>

#include "runtime/base/status.h"
#include "runtime/io/hdf5_file.h"
#include "runtime/model/keras/weights.h"

namespace tfjob::keras {

// Finds the weights in a file that has either of the formats described in layout.h.
StatusOr<Weights> WeightsOf(std::shared_ptr<const io::Hdf5File> file, const model::Model& model,
                            std::span<const model::VariableSpec> variables);

}  // namespace tfjob::keras
