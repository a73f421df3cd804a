// Finds the variables of an object-based checkpoint. Such checkpoints are written by
// tf.train.Checkpoint and, in the format "tf", by save_weights of tf.keras 2. Their tensors are
// named by the paths of objects (layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE).
#pragma once

#include <map>
#include <string>

#include "runtime/base/status.h"
#include "runtime/io/bundle_reader.h"

namespace tfjob::io {

// Returns whether the checkpoint is object-based.
bool IsObjectBased(const BundleReader& reader);

// Returns a map from the name that each variable had in the program that saved it ("dense/kernel")
// to the name of its tensor. Leaves out names that several variables share. Returns DataLoss if the
// checkpoint is damaged.
StatusOr<std::map<std::string, std::string>> ObjectVariables(const BundleReader& reader);

}  // namespace tfjob::io
