// Writes ZIP archives whose members are stored, not compressed, as numpy.savez and Keras do.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace tfjob::io {

// Writes a temporary file next to the archive, which Finish renames to the archive's path. Before
// Finish, the path keeps its old content. Owned by one thread. `files` must outlive the writer.
class ZipWriter {
 public:
  static StatusOr<std::unique_ptr<ZipWriter>> Create(const std::string& path,
                                                     FileSystem& files = RealFileSystem());
  // Removes the temporary file unless Finish has succeeded.
  ~ZipWriter();

  // Adds a member, whose content is the concatenation of `parts`. The name must be UTF-8 and at
  // most 65535 bytes long. Archives with the same members are identical byte for byte, because
  // members have no timestamps.
  Status Add(std::string_view name, std::span<const std::string_view> parts);
  Status Finish();

 private:
  ZipWriter(std::string path, FileSystem& files);
  Status Append(std::string_view bytes);

  const std::string path_, temporary_;
  FileSystem& files_;
  std::unique_ptr<OutputFile> file_;
  uint64_t size_ = 0, members_ = 0;
  std::string directory_;  // the encoded list of members
  bool finished_ = false;
};

}  // namespace tfjob::io
