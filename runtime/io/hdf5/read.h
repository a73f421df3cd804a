// Converts an HDF5 file to the safetensors format. Debian's HDF5 library is not safe against
// damaged files, so only the program tfjob-hdf5, which runs with limited resources
// (runtime/io/hdf5_file.h), may call this function.
#pragma once

#include "absl/functional/function_ref.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::io {

// Appends a safetensors file to `output`. It contains each dataset of numbers, named by its path
// without the leading slash, and two entries of metadata. "attributes" is JSON of the form {"PATH":
// {"NAME": "text" or ["text", …]}}, and contains the attributes that are strings, lists of strings
// or empty lists. "skipped" is JSON of the form {"PATH": "reason"}, and lists the datasets and
// links that cannot be converted. Links to other files are not followed.
//
// Returns DataLoss if the file is damaged, or if its unpacked size exceeds both 64 MiB and 16 times
// the size of the file. Calls `opened` once the file is open, before converting it.
Status ConvertHdf5(int descriptor, OutputFile& output, absl::FunctionRef<void()> opened);

}  // namespace tfjob::io
