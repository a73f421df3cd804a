// Reads Keras' .keras files: ZIP archives of config.json, metadata.json and model.weights.h5.
// Private to this package.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/io/hdf5_file.h"

namespace tfjob::keras {

// Returns config.json, with the member keras_version of metadata.json added. Returns
// InvalidArgument if the file is not a .keras file.
StatusOr<Json> ReadArchiveConfig(const std::string& path);

// Returns the weights. Returns InvalidArgument if the unpacked weights would exceed both 256 MiB
// and a hundred times their packed size.
StatusOr<std::unique_ptr<io::Hdf5File>> ReadArchiveWeights(const std::string& path);

}  // namespace tfjob::keras
