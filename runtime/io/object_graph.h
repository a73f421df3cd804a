// Reads which variables an object-based checkpoint contains. tf.train.Checkpoint and, for the
// format "tf", save_weights of tf.keras 2 write such checkpoints. Their tensors are named after
// paths of objects (layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE).
#pragma once

#include <map>
#include <string>

#include "runtime/base/status.h"
#include "runtime/io/bundle_reader.h"

namespace tfjob::io {

// Returns whether the checkpoint is object-based.
bool IsObjectBased(const BundleReader& reader);

// Returns the name of each variable in the program that saved it ("dense/kernel") → the name of its
// tensor. A name that several variables have is left out. Returns DataLoss if the checkpoint is
// damaged.
StatusOr<std::map<std::string, std::string>> ObjectVariables(const BundleReader& reader);

}  // namespace tfjob::io
