// Reads and writes named arrays in files of several formats.
#pragma once

#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/io/safetensors.h"

namespace tfjob::inference {

// Reads all arrays of a file. The extension of its name determines the format:
//   .npy           one array, without a name
//   .npz           NumPy's archive of arrays
//   .safetensors   named arrays
//   .csv           one array of float32, without a name: a row per line, numbers separated by
//                  commas; a first line that is not numbers is a header
// Returns InvalidArgument for any other extension. Propagates errors from the reader. Messages name
// the file.
StatusOr<io::NamedTensors> ReadArrays(const std::string& path);

// Writes the arrays in the format that the extension specifies. An .npy or .csv file holds exactly
// one array; a line of a .csv file is one example. Replaces the file atomically.
Status WriteArrays(const std::string& path, const io::NamedTensors& arrays,
                   FileSystem& files = RealFileSystem());
// Returns the error that WriteArrays would return for this name and this number of arrays.
Status CheckArraysPath(const std::string& path, size_t arrays);

}  // namespace tfjob::inference
