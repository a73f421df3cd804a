// Finds the program tfjob-hdf5, which converts HDF5 files (hdf5_file.h).
#pragma once

#include <string>

namespace tfjob::io {

// Returns the path of the program: that in the environment variable TFJOB_HDF5, otherwise that of
// InstalledHdf5Program.
std::string Hdf5Program();

// Returns the path of tfjob-hdf5 for a process. `program` is the folder of the process's own
// program, and `code` is the folder of the file that contains this code; the two differ only if the
// code is part of libtfjob.so. Looks in both folders, and in the `bin` folders beside `code` and
// above it, since the library is in PREFIX/lib or PREFIX/lib/x86_64-linux-gnu. If there is no
// program, returns the path that it would have in the folder `program`.
std::string InstalledHdf5Program(const std::string& program, const std::string& code);

}  // namespace tfjob::io
