#include "operator/control/cache/cache.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "operator/api/names.h"
#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/service.h"
#include "operator/policy/facts/gang_scheduler.h"

namespace tfjob::control {
namespace {

using client::As;
using client::Object;
using objects::CustomResource;
using objects::Kind;
using objects::ObjectMeta;
using objects::Pod;
using objects::Service;

std::string KeyOfJob(const ObjectMeta& metadata) {
  return StrCat(metadata.name_space, "/", metadata.name);
}

// Returns the key of the job that an object is assigned to. A key that ends with "/" means that
// there is no such job.
std::string KeyOfParent(const ObjectMeta& metadata) {
  const objects::OwnerReference* controller = metadata.controller();
  if (controller != nullptr && controller->kind == api::kKind) {
    return StrCat(metadata.name_space, "/", controller->name);
  }
  return StrCat(metadata.name_space, "/", metadata.label(api::kJobNameLabel));
}

// Returns true for a pod group, workload or network policy that does not belong to a TFJob. Pod
// groups and workloads are watched without a selector, so many of them may belong to other
// controllers.
template <typename T>
bool IsOthersBusiness(const T& child) {
  if constexpr (!std::is_same_v<T, CustomResource>) return false;
  const objects::OwnerReference* controller = child.metadata.controller();
  return controller == nullptr || controller->kind != api::kKind;
}

}  // namespace

Cache::Cache(Clock& clock, Changed changed) : clock_(clock), changed_(std::move(changed)) {}

Cache::Scope Cache::AddScope(const std::string& name_space) {
  auto jobs = std::make_unique<JobSink>(*this, Kind::kTFJob, name_space);
  auto pods = std::make_unique<ChildSink<Pod>>(*this, Kind::kPod, name_space);
  auto services = std::make_unique<ChildSink<Service>>(*this, Kind::kService, name_space);
  const Scope scope{*jobs, *pods, *services};
  MutexLock lock(mutex_);
  sinks_.push_back(std::move(jobs));
  sinks_.push_back(std::move(pods));
  sinks_.push_back(std::move(services));
  return scope;
}

client::WatchSink& Cache::AddGroups(Kind kind, const std::string& name_space, bool required) {
  auto sink = std::make_unique<ChildSink<CustomResource>>(*this, kind, name_space);
  sink->required = required;
  client::WatchSink& added = *sink;
  MutexLock lock(mutex_);
  sinks_.push_back(std::move(sink));
  return added;
}

void Cache::DropGroups(Kind kind) {
  MutexLock lock(mutex_);
  std::erase_if(sinks_, [kind](const auto& sink) { return sink->kind() == kind; });
}

bool Cache::GroupsSynced(Kind kind) {
  MutexLock lock(mutex_);
  bool any = false;
  for (const auto& sink : sinks_) {
    if (sink->kind() != kind) continue;
    if (!sink->synced) return false;
    any = true;
  }
  return any;
}

bool Cache::Synced() {
  MutexLock lock(mutex_);
  return std::all_of(sinks_.begin(), sinks_.end(), [](const auto& sink) { return sink->ready(); });
}

bool Cache::Synced(const std::string& key) {
  MutexLock lock(mutex_);
  return std::all_of(sinks_.begin(), sinks_.end(), [&](const auto& sink) {
    return !sink->holds_back_jobs() || !sink->Covers(key);
  });
}

std::vector<std::string> Cache::MissingLists() {
  MutexLock lock(mutex_);
  std::vector<std::string> missing;
  for (const auto& sink : sinks_) {
    if (sink->ready()) continue;
    std::string name(Name(sink->kind()));
    if (!sink->name_space().empty()) name += StrCat(" in namespace ", sink->name_space());
    missing.push_back(std::move(name));
  }
  return missing;
}

CacheNumbers Cache::Count() {
  MutexLock lock(mutex_);
  CacheNumbers numbers;
  for (const auto& [key, entry] : entries_) {
    numbers.pods += static_cast<int64_t>(entry.pods.size());
    numbers.services += static_cast<int64_t>(entry.services.size());
    const auto& job = entry.newest();
    if (job != nullptr) ++numbers.jobs[{job->metadata.name_space, job->state}];
  }
  return numbers;
}

bool Cache::Sink::Covers(const std::string& key) const {
  return name_space_.empty() || (key.size() > name_space_.size() &&
                                 key[name_space_.size()] == '/' && key.starts_with(name_space_));
}

void Cache::DropIfEmpty(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  const Entry& entry = found->second;
  const bool has_groups = std::any_of(entry.groups.begin(), entry.groups.end(),
                                      [](const auto& kind) { return !kind.second.empty(); });
  if (entry.seen == nullptr && entry.pods.empty() && entry.services.empty() && !has_groups) {
    entries_.erase(found);
  }
}

bool Cache::Upsert(PackedJob job) {
  Entry& entry = entries_[KeyOfJob(job->metadata)];
  const std::string& version = job->metadata.resource_version;
  bool own = false;
  if (entry.written != nullptr) {
    own = entry.written->metadata.resource_version == version;
    if (entry.superseded.count(version) == 0) {
      entry.written = nullptr;
      entry.superseded.clear();
      entry.doubted = false;
    }
  } else if (entry.seen != nullptr) {
    own = entry.seen->metadata.resource_version == version;
  }
  if (entry.seen != nullptr && entry.seen->metadata.uid != job->metadata.uid) {
    entry.departed.clear();
  }
  entry.seen = std::move(job);
  return !own;
}

void Cache::ForgetJob(Entry& entry) {
  entry.seen = entry.written = nullptr;
  entry.superseded.clear();
  entry.doubted = false;
  entry.departed.clear();
  entry.freed.clear();
  entry.pods.ForgetCreates();
  entry.services.ForgetCreates();
  for (auto& [kind, groups] : entry.groups) groups.ForgetCreates();
}

void Cache::JobSink::OnReplaced(std::vector<Object> objects) {
  std::vector<PackedJob> jobs;
  for (Object& object : objects) {
    if (PackedJob job = AsPackedJob(object)) jobs.push_back(std::move(job));
    object = {};
  }
  MutexLock lock(cache_.mutex_);
  std::set<std::string> listed;
  for (auto& job : jobs) {
    const std::string key = KeyOfJob(job->metadata);
    listed.insert(key);
    cache_.Upsert(std::move(job));
    cache_.entries_[key].doubted = cache_.entries_[key].written != nullptr;
    cache_.changed_(key, Urgency::kListed);
  }
  std::vector<std::string> gone;
  for (auto& [key, entry] : cache_.entries_) {
    if (entry.seen == nullptr || listed.count(key) > 0 || !Covers(key)) continue;
    ForgetJob(entry);
    gone.push_back(key);
  }
  for (const std::string& key : gone) {
    cache_.DropIfEmpty(key);
    cache_.changed_(key, Urgency::kListed);
  }
  RecordList();
}

void Cache::Sink::RecordList() {
  if (synced) return;
  synced = true;
  const bool waits =
      std::any_of(cache_.sinks_.begin(), cache_.sinks_.end(), [this](const auto& sink) {
        return sink->holds_back_jobs() && sink->name_space() == name_space_;
      });
  if (waits) return;
  for (const auto& [key, entry] : cache_.entries_) {
    if (Covers(key)) cache_.changed_(key, Urgency::kListed);
  }
}

void Cache::JobSink::OnUpserted(Object object) {
  const PackedJob job = AsPackedJob(object);
  if (job == nullptr) return;
  MutexLock lock(cache_.mutex_);
  if (cache_.Upsert(job)) cache_.changed_(KeyOfJob(job->metadata), Urgency::kNews);
}

void Cache::JobSink::OnDeleted(Object last_state) {
  MutexLock lock(cache_.mutex_);
  const std::string key = KeyOfJob(client::MetadataOf(last_state));
  const auto found = cache_.entries_.find(key);
  if (found == cache_.entries_.end()) return;
  ForgetJob(found->second);
  cache_.DropIfEmpty(key);
  cache_.changed_(key, Urgency::kNews);
}

// Returns the object to store when the watch reports `next`. For a pod, this object also records
// whether the pod ended before its deletion (RememberEnd).
template <typename T>
std::shared_ptr<const T> Succeeding(const Children<T>& children, std::shared_ptr<const T> next) {
  if constexpr (std::is_same_v<T, Pod>) {
    const Pod* earlier = children.Seen(next->metadata.name);
    if (earlier != nullptr) return objects::RememberEnd(*earlier, std::move(next));
  }
  return next;
}

template <typename T>
void Cache::RecordDeparture(Entry& entry, const std::shared_ptr<const T>& child) {
  if (entry.seen == nullptr) return;
  if (!child->metadata.IsControlledBy(entry.seen->metadata.uid)) {
    entry.freed.push_back(child->metadata.uid);
  } else if constexpr (std::is_same_v<T, Pod>) {
    entry.departed.push_back(child);
  }
}

template <typename T>
Children<T>& Cache::ChildSink<T>::ChildrenOf(Entry& entry) const {
  if constexpr (std::is_same_v<T, Pod>) {
    return entry.pods;
  } else if constexpr (std::is_same_v<T, Service>) {
    return entry.services;
  } else {
    return entry.groups[kind()];
  }
}

template <typename T>
void Cache::ChildSink<T>::OnReplaced(std::vector<Object> objects) {
  MutexLock lock(cache_.mutex_);
  std::unordered_map<std::string, std::map<std::string, std::shared_ptr<const T>>> by_job;
  for (const Object& object : objects) {
    auto child = As<T>(object);
    if (child == nullptr || IsOthersBusiness(*child)) continue;
    by_job[KeyOfParent(child->metadata)].emplace(child->metadata.name, child);
  }
  for (const auto& [key, children] : by_job) cache_.entries_[key];
  std::vector<std::string> keys;
  for (auto& [key, entry] : cache_.entries_) {
    Children<T>& children = ChildrenOf(entry);
    const auto listed = by_job.find(key);
    if (listed == by_job.end() && (children.empty() || !Covers(key))) continue;
    std::map<std::string, std::shared_ptr<const T>> shown;
    if (listed != by_job.end()) shown = std::move(listed->second);
    for (const auto& child : children.Replace(std::move(shown))) RecordDeparture(entry, child);
    keys.push_back(key);
  }
  for (const std::string& key : keys) {
    cache_.DropIfEmpty(key);
    cache_.changed_(key, Urgency::kListed);
  }
  RecordList();
}

template <typename T>
void Cache::ChildSink<T>::OnUpserted(Object object) {
  auto child = As<T>(object);
  if (child == nullptr || IsOthersBusiness(*child)) return;
  MutexLock lock(cache_.mutex_);
  const std::string key = KeyOfParent(child->metadata);
  Children<T>& children = ChildrenOf(cache_.entries_[key]);
  children.Upsert(Succeeding(children, std::move(child)));
  cache_.changed_(key, Urgency::kNews);
}

template <typename T>
void Cache::ChildSink<T>::OnDeleted(Object last_state) {
  auto child = As<T>(last_state);
  if (child == nullptr || IsOthersBusiness(*child)) return;
  MutexLock lock(cache_.mutex_);
  const std::string key = KeyOfParent(child->metadata);
  const auto found = cache_.entries_.find(key);
  if (found == cache_.entries_.end()) return;
  Children<T>& children = ChildrenOf(found->second);
  child = Succeeding(children, std::move(child));
  children.Erase(child->metadata);
  RecordDeparture(found->second, child);
  cache_.DropIfEmpty(key);
  cache_.changed_(key, Urgency::kNews);
}

std::shared_ptr<const CustomResource> Cache::Job(const std::string& key) {
  PackedJob packed;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    packed = found->second.newest();
  }
  return packed == nullptr ? nullptr : packed->Unpack();
}

bool Cache::JobExists(const std::string& key, const std::string& uid) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.newest() == nullptr) return false;
  const objects::ObjectMeta& metadata = found->second.newest()->metadata;
  return metadata.uid == uid && !metadata.terminating();
}

policy::Snapshot Cache::SnapshotOf(const std::string& key, const std::string& uid) {
  MutexLock lock(mutex_);
  policy::Snapshot snapshot;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return snapshot;
  for (auto& pod : found->second.pods.View()) {
    if (pod->metadata.IsControlledBy(uid)) snapshot.pods.push_back(std::move(pod));
  }
  for (auto& service : found->second.services.View()) {
    if (service->metadata.IsControlledBy(uid)) {
      snapshot.services.push_back(std::move(service));
    } else if (service->metadata.controller() == nullptr) {
      snapshot.orphan_services.push_back(std::move(service));
    }
  }
  for (const auto& [kind, groups] : found->second.groups) {
    for (auto& group : groups.View()) {
      if (!group->metadata.IsControlledBy(uid)) continue;
      if (kind == Kind::kNetworkPolicy) {
        const std::string name = api::NetworkPolicyName(key.substr(key.find('/') + 1));
        if (group->metadata.name == name) snapshot.network_policy = std::move(group);
      } else if (kind == Kind::kWorkload) {
        snapshot.workloads.push_back(std::move(group));
      } else {
        snapshot.pod_groups.push_back({policy::SchedulerOf(kind), std::move(group)});
      }
    }
  }
  for (const auto& pod : found->second.departed) {
    if (pod->metadata.IsControlledBy(uid)) snapshot.departed.push_back(pod);
  }
  return snapshot;
}

std::vector<std::string> Cache::TakeFreed(const std::string& key) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return {};
  return std::exchange(found->second.freed, {});
}

void Cache::Acknowledge(const std::string& key, const policy::Snapshot& snapshot) {
  if (snapshot.departed.empty()) return;
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  const std::set<std::shared_ptr<const Pod>> done(snapshot.departed.begin(),
                                                  snapshot.departed.end());
  std::erase_if(found->second.departed, [&](const auto& pod) { return done.count(pod) > 0; });
}

}  // namespace tfjob::control
