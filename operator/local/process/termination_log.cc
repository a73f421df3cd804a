#include "operator/local/process/termination_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "operator/local/process/file_descriptor.h"
#include "operator/objects/last_line.h"
#include "runtime/base/file.h"

namespace tfjob::process {
namespace {

constexpr off_t kMaxMessage = 4096;

}  // namespace

Status CreateTerminationLog(const std::string& path) {
  RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  // Remove the file first, because an earlier run of the container may have replaced it with a link
  // or a pipe.
  unlink(path.c_str());
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  return file.valid() ? OkStatus() : ErrnoStatus(errno, StrCat("open ", path));
}

std::string ReadTerminationLog(const std::string& path) {
  // Do not follow a link or wait for a writer, because the container may have replaced the file
  // with anything, such as a pipe.
  const FileDescriptor file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (!file.valid() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  std::string text(static_cast<size_t>(std::min(info.st_size, kMaxMessage)), '\0');
  const ssize_t read =
      pread(file.get(), text.data(), text.size(), std::max<off_t>(0, info.st_size - kMaxMessage));
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read)));
  return objects::LastLine(text, kMaxMessage);
}

}  // namespace tfjob::process
