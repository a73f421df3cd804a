#include "operator/local/process/path_owner.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

namespace tfjob::process {
namespace {

constexpr int kMaxLinks = 40;  // as in the kernel

Status CheckOwner(const std::string& part, const struct stat& folder, const struct stat& info,
                  const std::set<uid_t>& trusted) {
  const bool shared = (folder.st_mode & S_IWOTH) != 0;
  if (!shared || trusted.contains(info.st_uid)) return OkStatus();
  return FailedPrecondition(part, " belongs to user ", info.st_uid,
                            ", who could replace it, because everybody may write in its folder; "
                            "remove it, or use another path");
}

}  // namespace

Status CheckPathOwners(const std::string& path, const std::set<uid_t>& trusted) {
  std::filesystem::path rest = path, at = "/";
  struct stat folder{};
  int links = 0;
  if (stat("/", &folder) != 0) return ErrnoStatus(errno, "stat /");
  for (auto part = rest.begin(); part != rest.end();) {
    if (*part == ".") {
      ++part;
      continue;
    }
    const std::filesystem::path next = *part == ".." ? at.parent_path() : at / *part;
    struct stat info{};
    if (lstat(next.c_str(), &info) != 0) {
      return errno == ENOENT ? OkStatus() : ErrnoStatus(errno, StrCat("stat ", next.string()));
    }
    RETURN_IF_ERROR(CheckOwner(next.string(), folder, info, trusted));
    ++part;
    if (S_ISLNK(info.st_mode)) {
      std::error_code error;
      std::filesystem::path target = std::filesystem::read_symlink(next, error);
      if (error || ++links > kMaxLinks) return FailedPrecondition("cannot follow ", next.string());
      for (; part != rest.end(); ++part) target /= *part;
      if (target.is_absolute()) at = "/";
      rest = target;
      part = rest.begin();
      if (stat(at.c_str(), &folder) != 0) return ErrnoStatus(errno, StrCat("stat ", at.string()));
      continue;
    }
    at = next;
    folder = info;
  }
  return OkStatus();
}

}  // namespace tfjob::process
