// Reads a model's architecture from any of Keras' file formats.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::keras {

enum class FileFormat { kJson, kArchive, kHdf5, kSafetensors, kOther };

// Detects the format of a file by its first bytes. Returns kOther if the format is unknown.
StatusOr<FileFormat> FormatOf(const std::string& path);

// Returns InvalidArgument for a file of the format kOther if its name says that it has another
// format (.keras, .h5). Returns OK for all other names.
Status CheckSuffix(const std::string& path);

// Reads the model from a JSON file (the output of model.to_json()), a .keras file, or an .h5 file
// with a whole model. Returns InvalidArgument if the file has another format, or if the model is
// not supported; the message names the file.
StatusOr<model::Model> ReadModelFile(const std::string& path);

}  // namespace tfjob::keras
