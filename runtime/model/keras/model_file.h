// Reads a model's architecture from any of Keras' file formats.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::keras {

enum class FileFormat { kJson, kArchive, kHdf5, kSafetensors, kOther };

// Returns the format of the file, judging by its first bytes, or kOther if it is unknown.
StatusOr<FileFormat> FormatOf(const std::string& path);

// Reads the JSON that model.to_json() returns, a .keras file, or a whole model in an .h5 file.
// Returns InvalidArgument, with a message that names the file, if it has another format or the
// model is not supported.
StatusOr<model::Model> ReadModelFile(const std::string& path);

}  // namespace tfjob::keras
