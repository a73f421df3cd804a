#include "runtime/io/hdf5_program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "runtime/base/env.h"

namespace tfjob::io {
namespace {

constexpr char kHdf5Program[] = "tfjob-hdf5";

std::filesystem::path FolderOfProgram() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

// Returns the folder of the file that this code was loaded from.
std::filesystem::path FolderOfCode() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&InstalledHdf5Program), &info) == 0) return {};
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored).parent_path();
}

}  // namespace

std::string InstalledHdf5Program(const std::string& program, const std::string& code) {
  const std::filesystem::path beside = std::filesystem::path(program) / kHdf5Program;
  const std::filesystem::path library = code;
  for (const std::filesystem::path& path :
       {beside, library / kHdf5Program, library.parent_path() / "bin" / kHdf5Program,
        library.parent_path().parent_path() / "bin" / kHdf5Program}) {
    if (path.is_absolute() && access(path.c_str(), X_OK) == 0) return path;
  }
  return beside;
}

std::string Hdf5Program() {
  if (const std::optional<std::string> path = GetEnv("TFJOB_HDF5")) return *path;
  return InstalledHdf5Program(FolderOfProgram(), FolderOfCode());
}

}  // namespace tfjob::io
