// Reads and writes named arrays in files of several formats.
#pragma once

#include <string>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/io/safetensors.h"

namespace tfjob::inference {

// Reads all arrays of a file. The file name's extension determines the format:
//   .npy           one array, without a name
//   .npz           NumPy's archive of arrays
//   .safetensors   named arrays
//   .csv           one array of float32, without a name: a row per line, numbers separated by
//                  commas; a first line that is not numbers is a header
// Returns InvalidArgument for any other extension. Propagates errors from the reader of the format.
// Error messages contain the name of the file.
StatusOr<io::NamedTensors> ReadArrays(const std::string& path);

// Writes the arrays in the format that the extension specifies. An .npy or .csv file contains
// exactly one array; in a .csv file, each line is one example. Replaces the file atomically.
Status WriteArrays(const std::string& path, const io::NamedTensors& arrays,
                   FileSystem& files = RealFileSystem());
// Returns the error that WriteArrays would return for this name and this number of arrays.
Status CheckArraysPath(const std::string& path, size_t arrays);

}  // namespace tfjob::inference
