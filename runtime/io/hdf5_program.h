// Finds the program tfjob-hdf5, which converts HDF5 files (hdf5_file.h).
#pragma once

#include <string>

namespace tfjob::io {

// Returns the path of the program: that in the environment variable TFJOB_HDF5, otherwise that of
// InstalledHdf5Program.
std::string Hdf5Program();

// Returns the path of the program that belongs to a process whose program is in the folder
// `program`, and whose copy of this code is in the folder `code`: the same folder, unless the code
// is part of libtfjob.so. Looks in both folders, and in the `bin` folders beside `code` and above
// it, since the library is in PREFIX/lib or PREFIX/lib/x86_64-linux-gnu. If there is no program,
// returns the path that it would have beside the process's program.
std::string InstalledHdf5Program(const std::string& program, const std::string& code);

}  // namespace tfjob::io
