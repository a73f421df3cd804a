#include "operator/local/process/volumes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/local/process/path_owner.h"
#include "runtime/base/file.h"

namespace tfjob::process {
namespace {

Status WriteVolumeFile(const std::string& path, const std::string& content, mode_t mode) {
  RETURN_IF_ERROR(MakeDirectories(path.substr(0, path.rfind('/'))));
  RETURN_IF_ERROR(WriteFileAtomically(path, content));
  return chmod(path.c_str(), mode) == 0 ? OkStatus() : ErrnoStatus(errno, StrCat("chmod ", path));
}

// Returns the volume's items, or one item per key of the map if the volume lists none.
StatusOr<std::vector<Volume::Item>> ItemsOf(const Volume& volume, const Json& map) {
  if (!volume.items.empty()) return volume.items;
  std::vector<Volume::Item> items;
  for (const char* field : {"data", "binaryData"}) {
    ASSIGN_OR_RETURN(const auto members, JsonField(map)[field].Members());
    for (const auto& [key, value] : members) items.push_back({key, key, std::nullopt});
  }
  return items;
}

Status WriteConfigMap(const Volume& volume, const std::string& folder,
                      const ConfigMapReader& config_maps) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  const auto map = config_maps(volume.source);
  if (absl::IsNotFound(map.status()) && volume.optional) return OkStatus();
  RETURN_IF_ERROR(map.status());
  ASSIGN_OR_RETURN(const auto items, ItemsOf(volume, **map));
  for (const Volume::Item& item : items) {
    RETURN_IF_ERROR(CheckRelative(item.path, volume.path));
    const auto content = ConfigMapValue(**map, item.key);
    if (!content.ok() && volume.optional) continue;
    RETURN_IF_ERROR(content.status());
    const mode_t mode = static_cast<mode_t>(item.mode.value_or(volume.default_mode)) & 0777;
    RETURN_IF_ERROR(WriteVolumeFile(StrCat(folder, "/", item.path), *content, mode));
  }
  return OkStatus();
}

Status MakeHostFile(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0)
    RETURN_IF_ERROR(MakeDirectories(path.substr(0, slash)));
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoStatus(errno, StrCat("open ", path));
  close(fd);
  return OkStatus();
}

Status MakeHostPath(const Volume& volume) {
  const std::string& path = volume.source;
  const std::string& type = volume.host_type;
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) {
    if (type.empty() || type == "DirectoryOrCreate") return MakeDirectories(path);
    if (type == "FileOrCreate") return MakeHostFile(path);
    return FailedPrecondition("type ", type, " requires an existing path, but there is none");
  }
  const bool directory = S_ISDIR(info.st_mode);
  if (type.starts_with("Directory") && !directory) return FailedPrecondition("expected a folder");
  if (type.starts_with("File") && directory)
    return FailedPrecondition("expected a file, got a folder");
  return OkStatus();
}

Status PrepareHostPath(const Volume& volume) {
  const std::string& path = volume.source;
  if (!path.starts_with('/')) {
    return InvalidArgument(volume.path, ".hostPath.path: expected an absolute path, got \"", path,
                           "\"");
  }
  const std::set<uid_t> trusted = {geteuid(), 0};
  RETURN_IF_ERROR(CheckPathOwners(path, trusted));
  RETURN_IF_ERROR(MakeHostPath(volume));
  // Check again: another user may have created the path in the meantime.
  return CheckPathOwners(path, trusted);
}

Status PrepareClaim(const Volume& volume, const ClaimFinder& claims, std::string& path) {
  RETURN_IF_ERROR(CheckRelative(volume.source, volume.path));
  const LocalClaim claim = claims(volume.source);
  path = claim.path;
  if (!claim.given) return MakeDirectories(path);
  Volume folder = volume;
  folder.kind = Volume::Kind::kHostPath;
  folder.source = claim.path;
  folder.host_type = "Directory";
  return Annotate(PrepareHostPath(folder), StrCat("folder ", path));
}

std::string Describe(const Volume& volume) {
  const auto named = [&](std::string_view kind) {
    return StrCat("volume \"", volume.name, "\" (", kind, volume.source.empty() ? "" : " ",
                  volume.source, ")");
  };
  switch (volume.kind) {
    case Volume::Kind::kEmptyDir:
      return named("emptyDir");
    case Volume::Kind::kHostPath:
      return named("hostPath");
    case Volume::Kind::kConfigMap:
      return named("configMap");
    case Volume::Kind::kClaim:
      return named("persistentVolumeClaim");
    case Volume::Kind::kUnsupported:
      break;
  }
  return StrCat("volume \"", volume.name, "\"");
}

StatusOr<HostVolume> Prepare(const Volume& volume, const std::string& pod_folder,
                             const ClaimFinder& claims, const ConfigMapReader& config_maps) {
  HostVolume prepared{StrCat(pod_folder, "/volumes/", volume.name), false, Describe(volume)};
  switch (volume.kind) {
    case Volume::Kind::kEmptyDir:
      RETURN_IF_ERROR(MakeDirectories(prepared.path));
      return prepared;
    case Volume::Kind::kHostPath:
      prepared.path = volume.source;
      RETURN_IF_ERROR(PrepareHostPath(volume));
      return prepared;
    case Volume::Kind::kConfigMap:
      prepared.read_only = true;
      RETURN_IF_ERROR(WriteConfigMap(volume, prepared.path, config_maps));
      return prepared;
    case Volume::Kind::kClaim:
      RETURN_IF_ERROR(PrepareClaim(volume, claims, prepared.path));
      return prepared;
    case Volume::Kind::kUnsupported:
      break;
  }
  return Unimplemented(
      volume.path, ".", volume.source,
      ": there are no such volumes on this machine (emptyDir, hostPath and configMap are)");
}

}  // namespace

Status CheckRelative(const std::string& path, const std::string& what) {
  const std::string framed = StrCat("/", path, "/");
  if (path.empty() || path.starts_with('/') || framed.find("/../") != std::string::npos) {
    return InvalidArgument(what, ": expected a relative path without \"..\", got \"", path, "\"");
  }
  return OkStatus();
}

StatusOr<HostVolumes> PrepareVolumes(const PodSpec& pod, const std::string& pod_folder,
                                     const ClaimFinder& claims,
                                     const ConfigMapReader& config_maps) {
  std::set<std::string> mounted;
  for (const Container& container : pod.containers) {
    for (const VolumeMount& mount : container.mounts) mounted.insert(mount.volume);
  }
  HostVolumes volumes;
  for (const Volume& volume : pod.volumes) {
    if (!mounted.contains(volume.name)) continue;
    auto prepared = Prepare(volume, pod_folder, claims, config_maps);
    if (!prepared.ok()) return Annotate(prepared.status(), Describe(volume));
    volumes.emplace(volume.name, *std::move(prepared));
  }
  return volumes;
}

}  // namespace tfjob::process
