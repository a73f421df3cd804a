#include "runtime/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tfjob {
namespace {

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status WriteAndSync(const std::string& path, std::string_view content) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.get() < 0) return ErrnoStatus(errno, StrCat("create ", path));
  while (!content.empty()) {
    const ssize_t written = write(file.get(), content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, StrCat("write ", path));
    content.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(file.get()) != 0) return ErrnoStatus(errno, StrCat("fsync ", path));
  return OkStatus();
}

}  // namespace

StatusOr<std::string> ReadFile(const std::string& path) {
  Descriptor file(path, O_RDONLY);
  if (file.get() < 0) return ErrnoStatus(errno, StrCat("open ", path));
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(file.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, StrCat("read ", path));
    if (count == 0) return content;
    content.append(buffer, static_cast<size_t>(count));
  }
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = StrCat(path, ".tmp.", getpid(), ".", counter.fetch_add(1));
  Status written = WriteAndSync(temporary, content);
  if (written.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    written = ErrnoStatus(errno, StrCat("rename ", temporary, " to ", path));
  }
  if (!written.ok()) {
    unlink(temporary.c_str());
    return written;
  }
  const std::string parent = std::filesystem::path(path).parent_path();
  return SyncDirectory(parent.empty() ? "." : parent);
}

Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return ErrnoStatus(error.value(), StrCat("mkdir ", path));
  return OkStatus();
}

Status SyncDirectory(const std::string& path) {
  Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (folder.get() < 0) return ErrnoStatus(errno, StrCat("open ", path));
  if (fsync(folder.get()) != 0) return ErrnoStatus(errno, StrCat("fsync ", path));
  return OkStatus();
}

StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  auto entry = std::filesystem::directory_iterator(path, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  if (error) return ErrnoStatus(error.value(), StrCat("list ", path));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tfjob
