// Changes the working folder, so that the examples read and write files by their names alone.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/api/programs.h"

// Makes a new, empty folder the working folder of the process. The destructor restores the earlier
// one.
class WorkingFolder {
 public:
  explicit WorkingFolder(const std::string& name) : path_(Temp(name)) {
    // Bazel sets a path that is relative to the earlier folder.
    const char* tool = std::getenv("TFJOB_HDF5");
    if (tool != nullptr) setenv("TFJOB_HDF5", std::filesystem::absolute(tool).c_str(), 1);
    std::filesystem::create_directories(path_);
    std::filesystem::current_path(path_);
  }
  ~WorkingFolder() { std::filesystem::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::filesystem::path before_ = std::filesystem::current_path();
};
