#include "operator/local/process/mount_plan.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "runtime/base/file.h"

namespace tfjob::process {
namespace {

using MountKind = MountAction::Kind;

// Describes a mount: its source on the machine, and its target as the container sees it.
struct Bind {
  std::string source;
  std::string target;
  std::string purpose;
  bool directory = true;
  bool read_only = false;
};

enum class Existing { kNothing, kDirectory, kOther };

Existing Look(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return Existing::kNothing;
  return S_ISDIR(info.st_mode) ? Existing::kDirectory : Existing::kOther;
}

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string Join(const std::string& folder, const std::string& name) {
  return folder == "/" ? StrCat("/", name) : StrCat(folder, "/", name);
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return folder == "/" ? path != "/" : path.starts_with(folder + "/");
}

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Splits a path into its parts. Ignores "." as well as repeated and trailing slashes.
std::vector<std::string> Components(const std::string& path) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : path + "/") {
    if (c != '/') {
      part += c;
      continue;
    }
    if (!part.empty() && part != ".") parts.push_back(part);
    part.clear();
  }
  return parts;
}

// Resolves the symbolic links in the part of the path that exists. The part that does not exist
// remains as written.
std::string Resolve(const std::string& path) {
  std::string resolved = "/";
  for (const std::string& part : Components(path)) {
    const std::string next = Join(resolved, part);
    std::unique_ptr<char, decltype(&free)> real(realpath(next.c_str(), nullptr), &free);
    resolved = real ? real.get() : next;
  }
  return resolved;
}

class Planner {
 public:
  explicit Planner(std::string new_root) : new_root_(std::move(new_root)) {}

  Status Add(const VolumeMount& mount, const HostVolume& volume, const Variables& variables);
  StatusOr<std::vector<MountAction>> Plan();

 private:
  Status MakeTarget(const Bind& bind);
  Status MakeTargetInVolume(const Bind& bind, const Bind& outer);
  Status Graft(const std::string& folder, const std::string& purpose);
  static Status KeepEntries(const std::string& folder, const std::string& shown_at, int slot,
                            const std::string& purpose, std::vector<MountAction>& actions);
  // Plans the creation of the mount point of `bind`, a folder or an empty file, and of the folders
  // between `above` and the mount point.
  void MakePath(const std::string& above, const Bind& bind);
  StatusOr<int> NewSlot(const std::string& purpose);

  const std::string new_root_;
  std::vector<Bind> binds_;
  std::vector<MountAction> root_graft_;  // done first, because other grafts are inside the new root
  std::vector<MountAction> grafts_;
  std::vector<MountAction> points_;  // mount points to create in grafts
  std::set<std::string> grafted_;
  int slots_ = 0;
};

Status Planner::Add(const VolumeMount& mount, const HostVolume& volume,
                    const Variables& variables) {
  Bind bind;
  bind.purpose = StrCat(volume.description, " at ", mount.mount_path);
  if (!mount.mount_path.starts_with('/') || Components(mount.mount_path).empty()) {
    return InvalidArgument(mount.path, ".mountPath: expected an absolute path other than /, got \"",
                           mount.mount_path, "\"");
  }
  bind.source = volume.path;
  bind.target = Resolve(mount.mount_path);
  bind.read_only = mount.read_only || volume.read_only;
  if (!mount.sub_path.empty()) {
    const std::string sub =
        mount.expand_sub_path ? Expand(mount.sub_path, variables) : mount.sub_path;
    RETURN_IF_ERROR(CheckRelative(sub, StrCat(mount.path, ".subPath")));
    bind.source = Join(volume.path, sub);
    if (Look(bind.source) == Existing::kNothing) {
      if (volume.read_only) return NotFound(bind.purpose, ": there is no \"", sub, "\" in it");
      RETURN_IF_ERROR(Annotate(MakeDirectories(bind.source), bind.purpose));
    }
  }
  bind.directory = Look(bind.source) == Existing::kDirectory;
  for (const Bind& other : binds_) {
    if (other.target == bind.target)
      return InvalidArgument(bind.purpose, ": another volume is mounted there");
  }
  binds_.push_back(std::move(bind));
  return OkStatus();
}

StatusOr<int> Planner::NewSlot(const std::string& purpose) {
  if (slots_ == kMaximumSlots)
    return ResourceExhausted(purpose, ": more than ", kMaximumSlots, " mounts in a container");
  return slots_++;
}

void Planner::MakePath(const std::string& above, const Bind& bind) {
  std::string path = above;
  const auto parts = Components(bind.target.substr(above == "/" ? 0 : above.size()));
  for (size_t i = 0; i < parts.size(); ++i) {
    path = Join(path, parts[i]);
    const bool file = i + 1 == parts.size() && !bind.directory;
    points_.push_back(
        {file ? MountKind::kFile : MountKind::kDirectory, "", path, bind.purpose, -1, 0755});
  }
}

Status Planner::KeepEntries(const std::string& folder, const std::string& shown_at, int slot,
                            const std::string& purpose, std::vector<MountAction>& actions) {
  const std::unique_ptr<DIR, CloseFolder> listing(opendir(folder.c_str()));
  if (!listing) return ErrnoStatus(errno, StrCat(purpose, ": reading ", folder));
  while (const dirent* entry = readdir(listing.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string target = Join(shown_at, name);
    const std::string path = Join(folder, name);
    struct stat info{};
    if (lstat(path.c_str(), &info) != 0) continue;  // removed in the meantime
    if (S_ISLNK(info.st_mode)) {
      std::vector<char> link(PATH_MAX);
      const ssize_t size = readlink(path.c_str(), link.data(), link.size());
      if (size > 0)
        actions.push_back({MountKind::kSymlink,
                           {link.data(), static_cast<size_t>(size)},
                           target,
                           purpose,
                           -1,
                           0});
      continue;
    }
    actions.push_back({S_ISDIR(info.st_mode) ? MountKind::kDirectory : MountKind::kFile, "", target,
                       purpose, -1, 0755});
    actions.push_back({MountKind::kKeep, name, target, purpose, slot, 0});
  }
  return OkStatus();
}

Status Planner::Graft(const std::string& folder, const std::string& purpose) {
  if (!grafted_.insert(folder).second) return OkStatus();
  struct stat info{};
  if (stat(folder.c_str(), &info) != 0) return ErrnoStatus(errno, StrCat(purpose, ": ", folder));
  const bool root = folder == "/";
  if (root) RETURN_IF_ERROR(Annotate(MakeDirectories(new_root_), purpose));
  const std::string& shown_at = root ? new_root_ : folder;
  std::vector<MountAction>& actions = root ? root_graft_ : grafts_;
  ASSIGN_OR_RETURN(const int slot, NewSlot(purpose));
  actions.push_back({MountKind::kTmpfs, folder, shown_at, purpose, slot, info.st_mode & 07777});
  RETURN_IF_ERROR(KeepEntries(folder, shown_at, slot, purpose, actions));
  if (root) actions.push_back({MountKind::kRoot, "", shown_at, purpose, -1, 0});
  return OkStatus();
}

// Creates the mount point inside a volume. Outer volumes are mounted before the volumes inside
// them, so the mount point must exist in the outer volume's source.
Status Planner::MakeTargetInVolume(const Bind& bind, const Bind& outer) {
  const std::string inside = Join(outer.source, bind.target.substr(outer.target.size() + 1));
  if (Look(inside) != Existing::kNothing) return OkStatus();
  if (outer.read_only && outer.purpose.find("(hostPath") != std::string::npos) {
    return FailedPrecondition(bind.purpose, ": the path is missing in the read-only ",
                              outer.purpose);
  }
  if (bind.directory) return Annotate(MakeDirectories(inside), bind.purpose);
  RETURN_IF_ERROR(Annotate(MakeDirectories(ParentOf(inside)), bind.purpose));
  return Annotate(WriteFileAtomically(inside, ""), bind.purpose);
}

Status Planner::MakeTarget(const Bind& bind) {
  const Bind* outer = nullptr;
  for (const Bind& other : binds_) {
    if (IsBelow(bind.target, other.target)) outer = &other;  // sorted: the last is the innermost
  }
  if (outer != nullptr) return MakeTargetInVolume(bind, *outer);
  const Existing existing = Look(bind.target);
  if (existing == (bind.directory ? Existing::kDirectory : Existing::kOther)) return OkStatus();
  if (existing != Existing::kNothing) {
    return FailedPrecondition(bind.purpose, ": a ", bind.directory ? "folder" : "file",
                              " cannot be mounted there, since the path is a ",
                              bind.directory ? "file" : "folder");
  }
  std::string above = ParentOf(bind.target);
  while (Look(above) == Existing::kNothing) above = ParentOf(above);
  if (Look(above) != Existing::kDirectory)
    return FailedPrecondition(bind.purpose, ": ", above, " is not a folder");
  RETURN_IF_ERROR(Graft(above, bind.purpose));
  MakePath(above, bind);
  return OkStatus();
}

StatusOr<std::vector<MountAction>> Planner::Plan() {
  // Sort by target, so that each volume precedes the volumes mounted inside it.
  std::sort(binds_.begin(), binds_.end(), [](const Bind& a, const Bind& b) {
    return Components(a.target) < Components(b.target);
  });
  std::vector<MountAction> actions = {
      {MountKind::kNamespace, "", "", binds_.front().purpose, -1, 0}};
  std::vector<MountAction> attachments;
  for (const Bind& bind : binds_) {
    RETURN_IF_ERROR(MakeTarget(bind));
    ASSIGN_OR_RETURN(const int slot, NewSlot(bind.purpose));
    // Open all sources first, before a mount can hide one of them.
    actions.push_back({bind.read_only ? MountKind::kOpenReadOnly : MountKind::kOpen, bind.source,
                       "", bind.purpose, slot, 0});
    attachments.push_back({MountKind::kAttach, "", bind.target, bind.purpose, slot, 0});
  }
  for (auto* part : {&root_graft_, &grafts_, &points_, &attachments}) {
    actions.insert(actions.end(), part->begin(), part->end());
  }
  return actions;
}

}  // namespace

StatusOr<std::vector<MountAction>> PlanMounts(const Container& container,
                                              const HostVolumes& volumes,
                                              const Variables& variables,
                                              const std::string& new_root) {
  if (container.mounts.empty()) return std::vector<MountAction>();
  Planner planner(new_root);
  for (const VolumeMount& mount : container.mounts) {
    const auto volume = volumes.find(mount.volume);
    if (volume == volumes.end()) return NotFound("volume \"", mount.volume, "\" is not prepared");
    RETURN_IF_ERROR(planner.Add(mount, volume->second, variables));
  }
  return planner.Plan();
}

}  // namespace tfjob::process
