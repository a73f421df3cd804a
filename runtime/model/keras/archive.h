// Reads Keras' .keras files: ZIP archives of config.json, metadata.json and model.weights.h5.
// Private to this package.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/io/hdf5_file.h"

namespace tfjob::keras {

// Returns the contents of config.json, with keras_version copied from metadata.json. Returns
// InvalidArgument if the file is not a .keras file.
StatusOr<Json> ReadArchiveConfig(const std::string& path);

// Returns the weights file. Returns InvalidArgument if its unpacked size exceeds both 256 MiB and a
// hundred times its packed size.
StatusOr<std::unique_ptr<io::Hdf5File>> ReadArchiveWeights(const std::string& path);

}  // namespace tfjob::keras
