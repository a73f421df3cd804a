// Reads a model's architecture from a file in any form of Keras.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::keras {

enum class FileFormat { kJson, kArchive, kHdf5, kSafetensors, kOther };

// Determines the format from the first bytes. kOther stands for an unknown format.
StatusOr<FileFormat> FormatOf(const std::string& path);

// Accepts the JSON that model.to_json() returns, a .keras file, or a whole model in an .h5 file.
// Returns InvalidArgument if the file is of another kind or if the model is not supported; the
// message names the file.
StatusOr<model::Model> ReadModelFile(const std::string& path);

}  // namespace tfjob::keras
