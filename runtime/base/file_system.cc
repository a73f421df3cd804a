#include "runtime/base/file_system.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"

namespace tfjob {
namespace {

constexpr std::string_view kTemporary = ".tmp.";

class PosixOutputFile : public OutputFile {
 public:
  PosixOutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixOutputFile() override { close(fd_); }

  Status Append(std::string_view bytes) override {
    off_t end = size_;
    while (!bytes.empty()) {
      const ssize_t written = write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return CutBack(ErrnoStatus(errno, StrCat("write ", path_)));
      bytes.remove_prefix(static_cast<size_t>(written));
      end += written;
    }
    size_ = end;
    return OkStatus();
  }

  Status Sync() override {
    if (fsync(fd_) != 0) return ErrnoStatus(errno, StrCat("fsync ", path_));
    return OkStatus();
  }

 private:
  Status CutBack(Status error) {
    [[maybe_unused]] const int cut = ftruncate(fd_, size_);
    lseek(fd_, size_, SEEK_SET);
    return error;
  }

  const std::string path_;
  const int fd_;
  off_t size_ = 0;
};

class PosixFileSystem : public FileSystem {
 public:
  StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path) override {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) return ErrnoStatus(errno, StrCat("create ", path));
    return std::unique_ptr<OutputFile>(std::make_unique<PosixOutputFile>(path, fd));
  }
  Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return OkStatus();
    return ErrnoStatus(errno, StrCat("rename ", from, " to ", to));
  }
  Status Remove(const std::string& path) override {
    if (unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
    return ErrnoStatus(errno, StrCat("remove ", path));
  }
  Status SyncDirectory(const std::string& path) override { return tfjob::SyncDirectory(path); }
};

bool AllOf(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

}  // namespace

FileSystem& RealFileSystem() {
  static auto* const files = new PosixFileSystem;
  return *files;
}

std::string TemporaryPath(const std::string& path) {
  uint64_t random = 0;
  ENFORCE(getrandom(&random, sizeof(random), 0) == sizeof(random), "getrandom");
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(random));
  return StrCat(path, kTemporary, digits);
}

bool IsTemporaryName(std::string_view name) {
  const size_t at = name.rfind(kTemporary);
  if (at == std::string_view::npos || at == 0) return false;
  return AllOf(name.substr(at + kTemporary.size()), "0123456789abcdef.");
}

}  // namespace tfjob
