#include "runtime/io/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace tfjob::io {

StatusOr<MemoryFile> MemoryFile::Create(std::string name) {
  const int fd = memfd_create("tfjob", MFD_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, StrCat(name, ": memfd_create"));
  return MemoryFile(std::move(name), fd);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      memory_(std::exchange(other.memory_, nullptr)),
      mapped_(std::exchange(other.mapped_, 0)) {}

MemoryFile::~MemoryFile() {
  if (memory_ != nullptr) munmap(memory_, mapped_);
  if (fd_ >= 0) close(fd_);
}

Status MemoryFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, StrCat("write ", name_));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

StatusOr<std::string_view> MemoryFile::Map() {
  struct stat info{};
  if (fstat(fd_, &info) != 0) return ErrnoStatus(errno, StrCat("fstat ", name_));
  if (info.st_size == 0) return std::string_view();
  if (memory_ == nullptr) {
    void* const memory =
        mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) return ErrnoStatus(errno, StrCat("mmap ", name_));
    memory_ = memory;
    mapped_ = static_cast<size_t>(info.st_size);
  }
  return std::string_view(static_cast<const char*>(memory_), mapped_);
}

StatusOr<RandomAccessFile> MemoryFile::Reopened() const {
  return RandomAccessFile::Adopt(fcntl(fd_, F_DUPFD_CLOEXEC, 0), name_);
}

}  // namespace tfjob::io
