// Finds the files of a source, unpacks those that are compressed, and reads any part of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/records/temporary_file.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::data {

// Counts the damaged places in files.
struct Damage {
  int64_t places = 0;
  std::string first;  // the error message for the first place

  void Add(const Status& error);
};

// The properties that show whether a file has changed.
struct FileVersion {
  uint64_t size = 0, inode = 0;
  int64_t modified = 0;  // nanoseconds since 1970

  static StatusOr<FileVersion> Of(const io::RandomAccessFile& file);
  // Returns whether the version `now` of the file may still contain the content of this version.
  // Bytes may have been added at the end of the file.
  bool Continues(const FileVersion& now) const;
};

struct RecordFile {
  std::string path;
  uint64_t size = 0;         // size of the records, in bytes
  bool unpacked = false;     // the file is compressed; its records are in a temporary file
  uint64_t unpacked_at = 0;  // offset of the records in the temporary file
  FileVersion version = {};  // when it was first opened

  // Returns "train.tfrecord: record at byte 57", for messages.
  std::string Place(uint64_t offset) const;
};

// Returns the paths of the files that `patterns` match. Each pattern is a path or a shell pattern;
// the matches of a pattern are sorted. Returns NotFound if a shell pattern has no match, and
// InvalidArgument if a file is listed twice.
StatusOr<std::vector<std::string>> FindFiles(const std::vector<std::string>& patterns);

// Immutable once opened.
class RecordFiles {
 public:
  // Unpacks compressed files into a temporary file in `folder`. If `damage` is null, a damaged
  // compressed file is an error; otherwise, the damage is counted, and the content before it is
  // kept.
  static StatusOr<RecordFiles> Open(const std::vector<std::string>& paths,
                                    const std::string& folder, Damage* damage);

  const std::vector<RecordFile>& files() const { return files_; }
  const TemporaryFile* unpacked() const { return unpacked_ ? &*unpacked_ : nullptr; }

 private:
  RecordFiles() = default;
  Status Add(const std::string& path, const std::string& folder, Damage* damage);

  std::vector<RecordFile> files_;
  std::optional<TemporaryFile> unpacked_;
};

// Reads the files, and reads ahead when consecutive parts are requested. Owned by one thread. The
// RecordFiles must outlive the reader.
class RecordFileReader {
 public:
  static constexpr size_t kPadding = 64;  // see JsonDocument (runtime/base/json_view.h)
  static constexpr size_t kMostOpen = 64;

  // Keeps at most `most_open` files open, and at least one.
  explicit RecordFileReader(const RecordFiles& files, size_t most_open = kMostOpen);

  // Returns `size` bytes of a file from byte `offset` on; the file must contain all of them. The
  // view stays valid until the next call. At least kPadding readable bytes, with any content,
  // follow it. Returns FailedPrecondition if the file has changed when it is opened again.
  StatusOr<std::string_view> View(size_t file, uint64_t offset, size_t size);
  // Returns FailedPrecondition if a file that was read since the last call has changed since the
  // RecordFiles were opened. What was read from it may then be wrong.
  Status CheckUnchanged();

 private:
  StatusOr<const io::RandomAccessFile*> Opened(size_t file);
  Status Fill(size_t file, uint64_t offset, size_t size);
  Status Check(size_t file, const io::RandomAccessFile& opened) const;

  const RecordFiles& files_;
  size_t most_open_;
  std::vector<std::unique_ptr<io::RandomAccessFile>> open_;  // null for files that are not open
  std::deque<size_t> opened_;                                // the open files, oldest first
  std::vector<size_t> unchecked_;   // the files that were read since the last CheckUnchanged
  std::vector<bool> is_unchecked_;  // by file
  // The buffer contains the bytes of file in_buffer_, from byte begin_ on.
  std::vector<char> buffer_;
  size_t filled_ = 0;
  size_t in_buffer_ = 0;
  uint64_t begin_ = 0;
};

}  // namespace tfjob::data
