#include "runtime/data/records/temporary_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/env.h"

namespace tfjob::data {

std::string TemporaryFolder(const std::string& folder) {
  if (!folder.empty()) return folder;
  const std::string variable = GetEnv("TMPDIR").value_or("");
  return variable.empty() ? "/tmp" : variable;
}

StatusOr<TemporaryFile> TemporaryFile::Create(const std::string& folder) {
  std::string path = folder + "/tfjob-data-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  TemporaryFile file(folder, fd);
  if (fd < 0) return file.Failed(errno, "create a temporary file in ");
  unlink(path.c_str());
  return file;
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      memory_(std::exchange(other.memory_, nullptr)) {}

TemporaryFile::~TemporaryFile() {
  if (memory_ != nullptr) munmap(memory_, size_);
  if (fd_ >= 0) close(fd_);
}

Status TemporaryFile::Failed(int error, std::string_view what) const {
  return Annotate(ErrnoStatus(error, StrCat(what, folder_)),
                  "cache_dir (without it, TMPDIR) must be a folder with enough room");
}

Status TemporaryFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed(errno, "write a temporary file in ");
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

Status TemporaryFile::Read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed(errno, "read a temporary file in ");
    ENFORCE(got > 0, "only what was written is read");
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return OkStatus();
}

StatusOr<std::span<const std::byte>> TemporaryFile::Map() {
  ENFORCE(size_ > 0 && memory_ == nullptr, "mapped once, with content");
  void* memory = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return Failed(errno, "map a temporary file in ");
  memory_ = memory;
  return std::span(static_cast<const std::byte*>(memory), size_);
}

}  // namespace tfjob::data
