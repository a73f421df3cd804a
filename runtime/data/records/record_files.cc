#include "runtime/data/records/record_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/data/records/unpack.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kStart = 4 << 10;  // bytes read to find out whether a file is compressed
// If a View starts at most kNear bytes after the end of the buffer, it is probably part of a
// sequential read, so View then reads kAhead bytes at once.
constexpr size_t kAhead = 256 << 10, kNear = 16 << 10;

StatusOr<std::vector<std::string>> Expand(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) return std::vector{pattern};
  glob_t found{};
  const int code = glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (code == GLOB_NOMATCH) return NotFound(pattern, ": no file matches this pattern");
  if (code != 0) return ErrnoStatus(errno, StrCat("list ", pattern));
  std::sort(paths.begin(), paths.end());  // because glob's order depends on the locale
  return paths;
}

std::span<std::byte> Bytes(char* data, size_t size) {
  return {reinterpret_cast<std::byte*>(data), size};
}

StatusOr<std::string> StartOf(const io::RandomAccessFile& file) {
  std::string start(std::min<uint64_t>(kStart, file.size()), '\0');
  RETURN_IF_ERROR(file.Read(0, Bytes(start.data(), start.size())));
  return start;
}

}  // namespace

void Damage::Add(const Status& error) {
  if (places++ == 0) first = Message(error);
}

StatusOr<FileVersion> FileVersion::Of(const io::RandomAccessFile& file) {
  struct stat info{};
  if (fstat(file.descriptor(), &info) != 0)
    return ErrnoStatus(errno, StrCat("read the size of ", file.path()));
  return FileVersion{
      .size = static_cast<uint64_t>(info.st_size),
      .inode = info.st_ino,
      .modified = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

bool FileVersion::Continues(const FileVersion& now) const {
  // Ignore the inode, because some network file systems assign a new inode when a file is opened
  // again.
  if (now.size == size) return now.modified == modified;
  return now.size > size && now.inode == inode;
}

std::string RecordFile::Place(uint64_t offset) const {
  return StrCat(path, ": record at byte ", offset, unpacked ? " of its unpacked content" : "");
}

StatusOr<std::vector<std::string>> FindFiles(const std::vector<std::string>& patterns) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    ASSIGN_OR_RETURN(const std::vector<std::string> found, Expand(pattern));
    paths.insert(paths.end(), found.begin(), found.end());
  }
  std::vector<std::string> sorted = paths;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return InvalidArgument(*twice, ": the file is listed twice, or matches two patterns; expected ",
                           "each file once");
  }
  return paths;
}

StatusOr<RecordFiles> RecordFiles::Open(const std::vector<std::string>& paths,
                                        const std::string& folder, Damage* damage) {
  RecordFiles files;
  for (const std::string& path : paths) RETURN_IF_ERROR(files.Add(path, folder, damage));
  return files;
}

Status RecordFiles::Add(const std::string& path, const std::string& folder, Damage* damage) {
  ASSIGN_OR_RETURN(const io::RandomAccessFile file, io::RandomAccessFile::Open(path));
  ASSIGN_OR_RETURN(const std::string start, StartOf(file));
  ASSIGN_OR_RETURN(const FileVersion version, FileVersion::Of(file));
  if (!IsCompressed(start)) {
    files_.push_back({.path = path, .size = file.size(), .version = version});
    return OkStatus();
  }
  if (!unpacked_) {
    ASSIGN_OR_RETURN(TemporaryFile created, TemporaryFile::Create(folder));
    unpacked_.emplace(std::move(created));
  }
  const uint64_t begin = unpacked_->size();
  if (const Status error = Unpack(file, *unpacked_); !error.ok()) {
    // In an uncompressed file, the length of the first record may look like a zlib header.
    // Therefore, if no byte can be unpacked, treat the file as uncompressed.
    if (absl::IsDataLoss(error) && !start.starts_with('\x1f') && unpacked_->size() == begin) {
      files_.push_back({.path = path, .size = file.size(), .version = version});
      return OkStatus();
    }
    if (damage == nullptr || !absl::IsDataLoss(error)) return error;
    damage->Add(error);
  }
  files_.push_back({.path = path,
                    .size = unpacked_->size() - begin,
                    .unpacked = true,
                    .unpacked_at = begin,
                    .version = version});
  return OkStatus();
}

RecordFileReader::RecordFileReader(const RecordFiles& files, size_t most_open)
    : files_(files),
      most_open_(std::max<size_t>(most_open, 1)),
      open_(files.files().size()),
      is_unchecked_(files.files().size()) {}

StatusOr<const io::RandomAccessFile*> RecordFileReader::Opened(size_t file) {
  if (open_[file] != nullptr) return open_[file].get();
  if (opened_.size() >= most_open_) {
    const size_t oldest = opened_.front();
    if (is_unchecked_[oldest]) RETURN_IF_ERROR(Check(oldest, *open_[oldest]));
    open_[oldest].reset();
    opened_.pop_front();
  }
  ASSIGN_OR_RETURN(io::RandomAccessFile opened,
                   io::RandomAccessFile::Open(files_.files()[file].path));
  RETURN_IF_ERROR(Check(file, opened));
  open_[file] = std::make_unique<io::RandomAccessFile>(std::move(opened));
  opened_.push_back(file);
  return open_[file].get();
}

Status RecordFileReader::Check(size_t file, const io::RandomAccessFile& opened) const {
  ASSIGN_OR_RETURN(const FileVersion now, FileVersion::Of(opened));
  if (files_.files()[file].version.Continues(now)) return OkStatus();
  return FailedPrecondition(
      opened.path(), ": the file has changed since this task opened it; while tasks read a file, ",
      "change it only by adding records at its end");
}

Status RecordFileReader::CheckUnchanged() {
  Status changed;
  for (const size_t file : unchecked_) {
    is_unchecked_[file] = false;
    if (open_[file] != nullptr) changed.Update(Check(file, *open_[file]));
  }
  unchecked_.clear();
  return changed;
}

StatusOr<std::string_view> RecordFileReader::View(size_t file, uint64_t offset, size_t size) {
  const uint64_t end = begin_ + filled_;
  const bool after = file == in_buffer_ && offset >= begin_;
  if (!after || offset > end || size > end - offset) {
    const uint64_t left = files_.files()[file].size - offset;
    ENFORCE(size <= left, "the file has these bytes");
    const bool reads_on = after && offset <= end + kNear;
    RETURN_IF_ERROR(
        Fill(file, offset, reads_on ? std::min<uint64_t>(left, std::max(size, kAhead)) : size));
  }
  return std::string_view(buffer_.data() + (offset - begin_), size);
}

Status RecordFileReader::Fill(size_t file, uint64_t offset, size_t size) {
  filled_ = 0;
  if (buffer_.size() < size + kPadding) buffer_.resize(size + kPadding);
  const RecordFile& from = files_.files()[file];
  const std::span<std::byte> bytes = Bytes(buffer_.data(), size);
  if (from.unpacked) {
    RETURN_IF_ERROR(files_.unpacked()->Read(from.unpacked_at + offset, bytes));
  } else {
    ASSIGN_OR_RETURN(const io::RandomAccessFile* opened, Opened(file));
    if (!is_unchecked_[file]) unchecked_.push_back(file);
    is_unchecked_[file] = true;
    RETURN_IF_ERROR(opened->Read(offset, bytes));
  }
  in_buffer_ = file;
  begin_ = offset;
  filled_ = size;
  return OkStatus();
}

}  // namespace tfjob::data
