// Lists the files of examples in a folder with a subfolder per class.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"

namespace tfjob::data {

// Returns the sorted names of the folders in `folder`, including links to folders. These are the
// default classes.
StatusOr<std::vector<std::string>> ClassesIn(const std::string& folder);

struct ClassFolder {
  std::string path;
  std::vector<std::string> classes = {};  // the names of the folders; empty: as ClassesIn returns
  std::string content = "files";          // the word for the files in messages: "images"
  int64_t most_bytes = int64_t{1} << 30;  // the maximum size of a file; below 2^32
};

// The files in the class folders, and in all folders below them. The order is that of Keras'
// image_dataset_from_directory and text_dataset_from_directory: by class, then by folder, then by
// name, each compared bytewise. Files and folders whose names start with a dot are ignored, and
// links to folders are not followed. Immutable once listed. Uses 16 bytes per file, plus the length
// of its name.
class ClassFiles {
 public:
  // Lists the files. Returns NotFound if a folder does not exist, and InvalidArgument if a file is
  // too large or if there are no files.
  static StatusOr<ClassFiles> List(const ClassFolder& folder);

  const std::string& folder() const { return folder_; }
  // Returns the names of the classes. Class i has the label i.
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
    uint64_t name_end = 0;  // the end of its name in names_, where the next one starts
    uint32_t bytes = 0;
    uint32_t folder = 0;
  };

  explicit ClassFiles(ClassFolder options) : options_(std::move(options)) {}
  Status AddClass(const std::string& path, int64_t label);
  Status AddFolder(const std::string& path, int64_t label);
  const Folder& FolderOf(int64_t file) const {
    return folders_[files_[static_cast<size_t>(file)].folder];
  }
  std::string_view Name(int64_t file) const;

  ClassFolder options_;
  std::string folder_;
  std::vector<std::string> classes_;
  std::vector<Folder> folders_;
  std::vector<File> files_;
  std::string names_;
};

// Reads a file into `buffer`, and returns its content. `size` is the listed size of the file.
// Returns FailedPrecondition if the file has a different size now.
StatusOr<std::string_view> ReadClassFile(const std::string& path, uint64_t size,
                                         std::string& buffer);

}  // namespace tfjob::data
