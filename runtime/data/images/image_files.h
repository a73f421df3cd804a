// Lists the images in a folder with a subfolder for each class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"

namespace tfjob::data {

// Returns the sorted names of the folders in `folder`, including links to folders. These are the
// default classes.
StatusOr<std::vector<std::string>> ClassesIn(const std::string& folder);

// Lists the files in the folders of the classes, and in all folders below them. The order is that
// of Keras' image_dataset_from_directory: by class, then by folder, then by name, each compared by
// bytes. Files and folders whose names begin with a dot are ignored. Below the folders of the
// classes, links to folders are not followed. Takes 16 bytes per file, in addition to its name.
class ImageFiles {
 public:
  // Lists the folders `classes` or, if that is empty, those of ClassesIn. Returns NotFound if a
  // folder does not exist, and InvalidArgument if a file is not a regular file or is too large, if
  // there are no files, or if there are too many folders.
  static StatusOr<ImageFiles> List(const std::string& folder,
                                   const std::vector<std::string>& classes);

  const std::string& folder() const { return folder_; }
  // Returns the classes in the order of their labels: class i has the label i.
  const std::vector<std::string>& classes() const { return classes_; }
  int64_t size() const { return static_cast<int64_t>(files_.size()); }
  std::string Path(int64_t file) const;
  int64_t ClassOf(int64_t file) const { return FolderOf(file).label; }
  uint64_t Bytes(int64_t file) const { return files_[static_cast<size_t>(file)].bytes; }
  // Returns a hash of the classes, and of the names and sizes of the files.
  uint64_t Hash() const;
  uint64_t TotalBytes() const;  // of all files
  size_t MemoryBytes() const;   // of this list
  // Removes from the list the files for which `keep` returns false.
  void Filter(absl::FunctionRef<bool(int64_t file)> keep);

 private:
  struct Folder {
    std::string path;
    int64_t label = 0;
  };
  struct File {
    uint64_t name_end = 0;  // where its name ends in names_; the name before it ends at its start
    uint32_t bytes = 0;
    uint32_t folder = 0;
  };

  ImageFiles() = default;
  Status AddClass(const std::string& path, int64_t label);
  Status AddFolder(const std::string& path, int64_t label);
  const Folder& FolderOf(int64_t file) const {
    return folders_[files_[static_cast<size_t>(file)].folder];
  }
  std::string_view Name(int64_t file) const;

  std::string folder_;
  std::vector<std::string> classes_;
  std::vector<Folder> folders_;
  std::vector<File> files_;
  std::string names_;
};

}  // namespace tfjob::data
