// Finds the files of a source, unpacks compressed ones, and reads any part of them.
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

// The properties from which changes to a file are detected.
struct FileVersion {
  uint64_t size = 0, inode = 0;
  int64_t modified = 0;  // nanoseconds since 1970

  static StatusOr<FileVersion> Of(const io::RandomAccessFile& file);
  // Returns whether a file whose current version is `now` may still start with the content of this
  // version. Bytes may have been added at the end.
  bool Continues(const FileVersion& now) const;
};

struct RecordFile {
  std::string path;
  uint64_t size = 0;         // bytes of the records, after unpacking
  bool unpacked = false;     // the file is compressed; its records are in a temporary file
  uint64_t unpacked_at = 0;  // the start of the records in the temporary file
  FileVersion version = {};  // the version of the file when it was first opened

  // Returns a place for messages, such as "train.tfrecord: record at byte 57".
  std::string Place(uint64_t offset) const;
};

// Returns the paths of the files that match `patterns`, which are paths or shell patterns. The
// matches of each pattern are sorted. Returns NotFound if a shell pattern has no match, and
// InvalidArgument if a path occurs twice.
StatusOr<std::vector<std::string>> FindFiles(const std::vector<std::string>& patterns);

// Lists the files of a source. Immutable once opened.
class RecordFiles {
 public:
  // Opens the files once, and unpacks compressed ones into a temporary file in `folder`. If a
  // compressed file is damaged and `damage` is null, returns the error. If `damage` is not null,
  // adds the damage to it, and keeps the content before the damage.
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

// Reads parts of the files. Reads ahead if consecutive parts are requested. Only one thread may use
// a reader. The RecordFiles must outlive it.
class RecordFileReader {
 public:
  static constexpr size_t kPadding = 64;  // at least JsonDocument::kPadding (base/json_view.h)
  static constexpr size_t kMostOpen = 64;

  // Keeps at most `most_open` files open at a time, but at least one.
  explicit RecordFileReader(const RecordFiles& files, size_t most_open = kMostOpen);

  // Returns `size` bytes of a file, starting at byte `offset`; the file must contain all of these
  // bytes. The view stays valid until the next call. At least kPadding readable bytes with
  // arbitrary content follow the view. Returns FailedPrecondition if the file has to be opened and
  // has changed since the RecordFiles were opened.
  StatusOr<std::string_view> View(size_t file, uint64_t offset, size_t size);
  // Checks the files that were read since the last call. Returns FailedPrecondition if one of them
  // has changed since the RecordFiles were opened; the bytes read from it may be wrong.
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
  std::vector<bool> is_unchecked_;  // for each file, whether it is in unchecked_
  // Contains `filled_` bytes of the file in_buffer_, starting at byte begin_.
  std::vector<char> buffer_;
  size_t filled_ = 0;
  size_t in_buffer_ = 0;
  uint64_t begin_ = 0;
};

}  // namespace tfjob::data
