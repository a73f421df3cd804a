// Tracks the operator's own writes that the watches have not reported yet, and determines which
// objects must be read to confirm these writes.
#include <algorithm>
#include <optional>
#include <utility>

#include "operator/control/cache/cache.h"

namespace tfjob::control {

using client::As;
using client::Object;
using objects::CustomResource;
using objects::Kind;
using objects::Pod;
using objects::Service;

namespace {

// Records the result of reading an object. `found` is nullopt if the object does not exist.
template <typename T>
void RecordReadChild(Children<T>& children, const std::string& name,
                     const std::optional<Object>& found, Duration now) {
  auto child = found ? As<T>(*found) : nullptr;
  if (child != nullptr) {
    children.RecordCreate(std::move(child), now);
  } else {
    children.RecordAbsence(name);
  }
}

}  // namespace

void Cache::RecordWrite(const std::string& key, const std::string& base, const Object& newer) {
  PackedJob packed = AsPackedJob(newer);
  if (packed == nullptr) return;
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.seen == nullptr) return;
  Entry& entry = found->second;
  // If the newest version is not `base`, the watch has already reported this write or a newer
  // version.
  if (entry.newest()->metadata.resource_version != base) return;
  entry.superseded.insert(base);
  entry.superseded.insert(entry.seen->metadata.resource_version);
  entry.superseded.erase(packed->metadata.resource_version);
  entry.written = std::move(packed);
  entry.doubted = false;
}

bool Cache::IsInDoubt(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() && found->second.doubted;
}

void Cache::RecordCreate(const std::string& key, Kind kind, const Object& object) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.seen == nullptr) return;
  Entry& entry = found->second;
  if (const auto pod = As<Pod>(object)) {
    entry.pods.RecordCreate(pod, clock_.Monotonic());
  } else if (const auto service = As<Service>(object)) {
    entry.services.RecordCreate(service, clock_.Monotonic());
  } else if (const auto group = As<CustomResource>(object)) {
    entry.groups[kind].RecordCreate(group, clock_.Monotonic());
  }
}

void Cache::RecordPolicyChange(const std::string& key, const std::string& base,
                               const Object& newer) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  const auto policy = As<CustomResource>(newer);
  if (found == entries_.end() || policy == nullptr) return;
  found->second.groups[Kind::kNetworkPolicy].RecordChange(base, policy, clock_.Monotonic());
}

void Cache::RecordDelete(const std::string& key, const std::string& uid, const Deletion& deletion) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.pods.RecordDelete(uid, deletion);
  found->second.services.RecordDelete(uid, deletion);
}

void Cache::RecordGone(const std::string& key, const std::string& uid) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  found->second.pods.RecordDelete(uid, std::nullopt);
  found->second.services.RecordDelete(uid, std::nullopt);
  for (auto& [kind, groups] : found->second.groups) groups.RecordDelete(uid, std::nullopt);
}

std::vector<client::Key> Cache::ObjectsToRead(const std::string& key, Duration patience) {
  MutexLock lock(mutex_);
  std::vector<client::Key> keys;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return keys;
  const std::string name_space = key.substr(0, key.find('/'));
  const Duration since = clock_.Monotonic() - patience;
  for (std::string& name : found->second.services.NamesToRead(since)) {
    keys.push_back({Kind::kService, name_space, std::move(name)});
  }
  for (std::string& name : found->second.pods.NamesToRead(since)) {
    keys.push_back({Kind::kPod, name_space, std::move(name)});
  }
  for (const auto& [kind, groups] : found->second.groups) {
    for (std::string& name : groups.NamesToRead(since)) {
      keys.push_back({kind, name_space, std::move(name)});
    }
  }
  return keys;
}

void Cache::RecordRead(const std::string& key, const client::Key& object,
                       const std::optional<Object>& found) {
  const Duration now = clock_.Monotonic();
  MutexLock lock(mutex_);
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return;
  switch (object.kind) {
    case Kind::kPod:
      return RecordReadChild(entry->second.pods, object.name, found, now);
    case Kind::kService:
      return RecordReadChild(entry->second.services, object.name, found, now);
    default:
      return RecordReadChild(entry->second.groups[object.kind], object.name, found, now);
  }
}

bool Cache::WaitsForWatch(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  const Entry& entry = found->second;
  return entry.pods.waits_for_watch() || entry.services.waits_for_watch() ||
         std::any_of(entry.groups.begin(), entry.groups.end(),
                     [](const auto& kind) { return kind.second.waits_for_watch(); });
}

}  // namespace tfjob::control
