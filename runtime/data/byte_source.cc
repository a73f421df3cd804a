#include "runtime/data/byte_source.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace tfjob::data {
namespace {

// The best compression ratio of deflate is 1032:1 (zlib.net/zlib_tech.html).
constexpr uint64_t kMaxRatio = 1040;

// Only very repetitive data can be compressed to less than a hundredth of its size. A file that
// contains such data may have been created to exhaust its reader's memory.
constexpr uint64_t kUsualRatio = 100;

}  // namespace

void ByteSource::Close::operator()(gzFile_s* file) const {
  gzclose_r(file);
}

StatusOr<ByteSource> ByteSource::Open(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus(errno, StrCat("open ", path));
  if (!S_ISREG(info.st_mode))
    return InvalidArgument(path, ": expected a file, got a folder or a device");
  ByteSource source;
  source.path_ = path;
  source.file_.reset(gzopen(path.c_str(), "rb"));
  if (source.file_ == nullptr) return ErrnoStatus(errno, StrCat("open ", path));
  gzbuffer(source.file_.get(), 256 << 10);
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  source.compressed_ = gzdirect(source.file_.get()) == 0;
  source.max_bytes_ = source.compressed_ ? size * kMaxRatio : size;
  source.usual_bytes_ = std::max(kFreeBytes, size * kUsualRatio);
  return source;
}

StatusOr<size_t> ByteSource::Read(std::span<std::byte> bytes) {
  constexpr size_t kPart = 1 << 30;  // gzread counts in int
  size_t done = 0;
  while (done < bytes.size()) {
    const auto part = static_cast<unsigned>(std::min(bytes.size() - done, kPart));
    const int got = gzread(file_.get(), bytes.data() + done, part);
    if (got > 0) done += static_cast<size_t>(got);
    if (got == static_cast<int>(part)) continue;
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR)
      return DataLoss(path_, ": the gzip data ends early: the file is truncated; copy it again");
    if (code == Z_ERRNO) return ErrnoStatus(errno, StrCat("read ", path_));
    if (code != Z_OK)
      return DataLoss(path_, ": damaged gzip data: ", text, "; copy the file again");
    break;
  }
  return done;
}

StatusOr<std::string> ByteSource::ReadText() {
  std::string text;
  std::vector<std::byte> part(1 << 20);
  while (true) {
    ASSIGN_OR_RETURN(const size_t got, Read(part));
    if (compressed_ && text.size() + got > usual_bytes_) {
      return InvalidArgument(path_, ": the gzip data unpacks to more than ", usual_bytes_,
                             " bytes, ", kUsualRatio,
                             " times its size; if it is meant to, unpack the file (gunzip)");
    }
    text.append(reinterpret_cast<const char*>(part.data()), got);
    if (got < part.size()) return text;
  }
}

StatusOr<bool> UnpacksToMore(const std::string& path, uint64_t most) {
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  if (!source.compressed()) return source.max_bytes() > most;
  std::vector<std::byte> part(256 << 10);
  for (uint64_t read = 0;;) {
    ASSIGN_OR_RETURN(const size_t got, source.Read(part));
    read += got;
    if (read > most) return true;
    if (got < part.size()) return false;
  }
}

Status ByteSource::ReadAll(std::span<std::byte> bytes, std::string_view what) {
  ASSIGN_OR_RETURN(size_t got, Read(bytes));
  if (got == bytes.size()) return OkStatus();
  return DataLoss(path_, ": expected ", bytes.size(), " bytes of ", what, ", the file ends after ",
                  got);
}

}  // namespace tfjob::data
