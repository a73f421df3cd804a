#include "operator/local/run/state_dir.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/file.h"

namespace tfjob::local {
namespace {

std::string AbsolutePath(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

StatusOr<std::string> MakeTemporaryFolder(const std::string& job) {
  std::string parent = GetEnv("TMPDIR").value_or("");
  if (parent.empty()) parent = "/tmp";
  std::string path = AbsolutePath(StrCat(parent, "/tfjob-", job, "-XXXXXX"));
  if (mkdtemp(path.data()) == nullptr) {
    return ErrnoStatus(errno, StrCat("creating a folder in ", parent));
  }
  return path;
}

StatusOr<process::FileDescriptor> Lock(const std::string& folder) {
  const std::string path = folder + "/lock";
  process::FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) return ErrnoStatus(errno, path);
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) {
    return FailedPrecondition("--state-dir: another tfjob run is using ", folder,
                              " (it has locked ", path,
                              "); choose another folder, or wait until that run has ended");
  }
  return ErrnoStatus(errno, StrCat("locking ", path));
}

}  // namespace

StatusOr<StateDir> StateDir::Create(const std::string& given, const std::string& job) {
  std::string path;
  if (given.empty()) {
    ASSIGN_OR_RETURN(path, MakeTemporaryFolder(job));
  } else {
    RETURN_IF_ERROR(MakeDirectories(given));
    path = AbsolutePath(given);
  }
  ASSIGN_OR_RETURN(process::FileDescriptor lock, Lock(path));
  return StateDir(std::move(path), std::move(lock));
}

}  // namespace tfjob::local
