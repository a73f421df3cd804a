// Finds the program tfjob-hdf5, which converts HDF5 files (hdf5_file.h).
#pragma once

#include <string>

namespace tfjob::io {

// Returns the path of the program: the value of the environment variable TFJOB_HDF5 if it is set,
// otherwise the result of InstalledHdf5Program.
std::string Hdf5Program();

// Returns the path of tfjob-hdf5 for a process. `program` is the folder of the process's main
// program, and `code` is the folder of the file that contains this code. The two folders differ
// only if the code is part of libtfjob.so. Searches both folders, and the `bin` folders next to
// `code` and to its parent, because the library is in PREFIX/lib or PREFIX/lib/x86_64-linux-gnu. If
// the program is not found, returns the path that it would have in the folder `program`.
std::string InstalledHdf5Program(const std::string& program, const std::string& code);

}  // namespace tfjob::io
