#include "runtime/io/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tfjob::io {

StatusOr<RandomAccessFile> RandomAccessFile::Open(const std::string& path) {
  // Use O_NONBLOCK, so that open() does not wait for a writer if the path is a pipe.
  return Adopt(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path);
}

StatusOr<RandomAccessFile> RandomAccessFile::Adopt(int fd, std::string name) {
  RandomAccessFile file(std::move(name), fd);
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0) return ErrnoStatus(errno, StrCat("open ", file.path_));
  if (!S_ISREG(info.st_mode))
    return InvalidArgument(file.path_, ": expected a file, got a folder, a pipe or a device");
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

RandomAccessFile::~RandomAccessFile() {
  if (fd_ >= 0) close(fd_);
}

Status RandomAccessFile::Read(uint64_t offset, std::span<std::byte> bytes) const {
  if (offset > size_ || bytes.size() > size_ - offset) {
    return DataLoss(path_, " has ", size_, " bytes; expected ", bytes.size(), " bytes at byte ",
                    offset, ": it is truncated or damaged");
  }
  while (!bytes.empty()) {
    const ssize_t got = pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, StrCat("read ", path_));
    if (got == 0) return DataLoss(path_, " ends at byte ", offset, ": it became shorter");
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return OkStatus();
}

}  // namespace tfjob::io
