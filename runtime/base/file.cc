#include "runtime/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tfjob {
namespace {

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status WriteAndSync(const std::string& path, absl::FunctionRef<Status(OutputFile&)> write,
                    FileSystem& files) {
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, files.Create(path));
  RETURN_IF_ERROR(write(*file));
  return file->Sync();
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

Status WriteFileAtomically(const std::string& path, std::string_view content, FileSystem& files) {
  return WriteFileAtomically(
      path, [content](OutputFile& file) { return file.Append(content); }, files);
}

Status WriteFileAtomically(const std::string& path, absl::FunctionRef<Status(OutputFile&)> write,
                           FileSystem& files) {
  const std::string temporary = TemporaryPath(path);
  Status written = WriteAndSync(temporary, write, files);
  if (written.ok()) written = files.Rename(temporary, path);
  if (!written.ok()) {
    // Remove the file. It was created here, because its name is random.
    files.Remove(temporary).IgnoreError();
    return written;
  }
  return files.SyncDirectory(ParentFolder(path));
}

std::string ParentFolder(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent;
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
