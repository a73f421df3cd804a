// Writes HDF5 files that h5py can read. Only the program tfjob-hdf5 calls this code
// (runtime/io/hdf5_file.h).
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "runtime/io/safetensors.h"

namespace tfjob::io {

// Appends an HDF5 file to `output`. Its datasets are `tensors`, whose names are their paths. Its
// attributes come from the metadata "attributes", in the form that ConvertHdf5 (read.h) returns.
// Paths with attributes but without a tensor become groups. Equal tensors yield equal files.
Status WriteHdf5(const SafetensorsReader& tensors, OutputFile& output);

}  // namespace tfjob::io
