// Caches a job's pods (or services, or pod groups) as the watch has reported them, together with
// the operator's own writes that the watch has not reported yet. Without these writes, a decision
// could be based on an earlier state. Not thread-safe: the lock of the cache guards each instance.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/objects/custom_resource.h"
#include "operator/objects/metadata.h"
#include "operator/objects/service.h"

namespace tfjob::control {

// Describes a deletion that the server has accepted: when it was requested, and the grace period.
struct Deletion {
  Time requested;
  int64_t grace_seconds = 0;
};

template <typename T>
class Children {
 public:
  using Pointer = std::shared_ptr<const T>;

  bool empty() const { return seen_.empty() && own_.empty(); }
  // Returns the number of objects that the watch has reported.
  size_t size() const { return seen_.size(); }

  // Returns the object called `name` that the watch has reported; nullptr if there is none.
  const T* Seen(const std::string& name) const {
    const auto found = seen_.find(name);
    return found == seen_.end() ? nullptr : found->second.get();
  }

  // Upsert and Erase apply a watch event.
  void Upsert(Pointer object) {
    const objects::ObjectMeta& metadata = object->metadata;
    if (!IsSuperseded(metadata)) DropOwn(metadata);
    if (metadata.terminating()) {
      deleted_.erase(metadata.uid);
      doubted_.erase(metadata.name);
    }
    if (const auto found = seen_.find(metadata.name);
        found != seen_.end() && found->second->metadata.uid != metadata.uid) {
      deleted_.erase(found->second->metadata.uid);
      doubted_.erase(metadata.name);
      DropOwn(found->second->metadata);
    }
    seen_[metadata.name] = std::move(object);
  }
  void Erase(const objects::ObjectMeta& metadata) {
    DropOwn(metadata);
    doubted_.erase(metadata.name);
    deleted_.erase(metadata.uid);
    const auto found = seen_.find(metadata.name);
    if (found != seen_.end() && found->second->metadata.uid == metadata.uid) seen_.erase(found);
  }
  // Replaces all objects with those in a new list, and returns the objects that the list no longer
  // contains. Keeps the operator's own writes until they are confirmed, because the list may be
  // older than these writes, or the server's store may have been restored to an earlier state.
  std::vector<Pointer> Replace(std::map<std::string, Pointer> objects) {
    std::vector<Pointer> gone;
    std::set<std::string> listed;
    for (const auto& [name, object] : objects) listed.insert(object->metadata.uid);
    for (auto& [name, object] : seen_) {
      if (listed.count(object->metadata.uid) == 0) gone.push_back(object);
    }
    for (const Pointer& object : gone) {
      deleted_.erase(object->metadata.uid);
      DropOwn(object->metadata);
    }
    seen_.clear();
    doubted_.clear();
    for (auto& [name, object] : objects) Upsert(std::move(object));
    for (const auto& [name, object] : seen_) {
      if (deleted_.count(object->metadata.uid) > 0) doubted_.insert(name);
    }
    return gone;
  }

  // Records an object that the operator created or read. If the watch has already reported the
  // object, keeps this version only if the watch has not yet reported the operator's own change to
  // the object. If the object was recorded as deleted but turns out to exist, View() includes it
  // again.
  void RecordCreate(Pointer object, Duration now) {
    const std::string name = object->metadata.name;
    const bool doubted = doubted_.erase(name) > 0 && !object->metadata.terminating();
    const auto deleted = deleted_.find(object->metadata.uid);
    if (deleted != deleted_.end() && (doubted || !deleted->second)) deleted_.erase(deleted);
    const auto found = seen_.find(name);
    const bool seen = found != seen_.end() && found->second->metadata.uid == object->metadata.uid;
    if (!seen) {
      own_[name] = {std::move(object), now, {}};
    } else if (IsChanged(name) && VersionOf(*found->second) != VersionOf(*object)) {
      StoreChange(std::move(object), now);
    } else {
      own_.erase(name);
    }
  }
  // Records the object that the server returned when the operator changed version `base`. Does
  // nothing if another version is known by now, because that version may be newer.
  void RecordChange(const std::string& base, Pointer object, Duration now) {
    const T* newest = Newest(object->metadata.name);
    if (newest == nullptr || newest->metadata.uid != object->metadata.uid) return;
    if (VersionOf(*newest) != base || VersionOf(*object) == base) return;
    StoreChange(std::move(object), now);
  }
  // Records a deletion. `ends` is the accepted deletion, or nullopt if the object is already gone.
  void RecordDelete(const std::string& uid, std::optional<Deletion> ends) {
    for (const auto& [name, object] : seen_) {
      if (object->metadata.uid == uid && (!ends || !object->metadata.terminating())) {
        deleted_[uid] = ends;
      }
    }
    for (auto created = own_.begin(); created != own_.end();) {
      const bool same = created->second.object->metadata.uid == uid;
      if (same && ends) deleted_[uid] = ends;
      created = same && !ends ? own_.erase(created) : std::next(created);
    }
  }
  // Removes the records of creates that the watch has not reported yet. Call this when the job is
  // gone, because the watch will then never confirm its objects.
  void ForgetCreates() {
    for (const auto& [name, created] : own_) deleted_.erase(created.object->metadata.uid);
    own_.clear();
  }
  // Records that a read found no object named `name`.
  void RecordAbsence(const std::string& name) {
    doubted_.erase(name);
    const auto own = own_.find(name);
    if (own == own_.end()) return;
    const std::string& uid = own->second.object->metadata.uid;
    if (Seen(name) != nullptr && Seen(name)->metadata.uid == uid) {
      deleted_[uid] = std::nullopt;
    } else {
      deleted_.erase(uid);
    }
    own_.erase(own);
  }

  // Returns the names of the objects to read: those that the operator created or changed at or
  // before `since` without a report from the watch so far, and those that it deleted but a later
  // list still contains.
  std::vector<std::string> NamesToRead(Duration since) const {
    std::vector<std::string> names(doubted_.begin(), doubted_.end());
    for (const auto& [name, created] : own_) {
      if (created.at <= since) names.push_back(name);
    }
    return names;
  }
  bool waits_for_watch() const { return !own_.empty(); }

  // Returns the newest known objects, including the operator's own creates and changes. Omits
  // objects that are gone, and marks objects that the operator has deleted as terminating.
  std::vector<Pointer> View() const {
    std::vector<Pointer> view;
    for (const auto& [name, object] : seen_) {
      if (own_.count(name) == 0) Show(object, view);
    }
    for (const auto& [name, created] : own_) Show(created.object, view);
    return view;
  }

 private:
  struct OwnWrite {
    Pointer object;
    Duration at{0};
    std::set<std::string> superseded;  // versions older than the object; empty for a create
  };

  static const std::string& VersionOf(const T& object) { return object.metadata.resource_version; }

  // Returns the newest known version of the object; nullptr if none is known.
  const T* Newest(const std::string& name) const {
    const auto own = own_.find(name);
    return own == own_.end() ? Seen(name) : own->second.object.get();
  }
  // Returns true if the operator has changed the object and the watch has not reported the change.
  bool IsChanged(const std::string& name) const {
    const auto own = own_.find(name);
    return own != own_.end() && !own->second.superseded.empty();
  }
  // Returns true if this version is older than the operator's own change to the object.
  bool IsSuperseded(const objects::ObjectMeta& metadata) const {
    const auto own = own_.find(metadata.name);
    return own != own_.end() && own->second.object->metadata.uid == metadata.uid &&
           own->second.superseded.contains(metadata.resource_version);
  }
  void StoreChange(Pointer object, Duration now) {
    const std::string name = object->metadata.name;
    std::set<std::string> superseded;
    if (IsChanged(name)) superseded = own_[name].superseded;
    superseded.insert(VersionOf(*Newest(name)));
    if (const T* seen = Seen(name)) superseded.insert(VersionOf(*seen));
    superseded.erase(VersionOf(*object));
    own_[name] = {std::move(object), now, std::move(superseded)};
  }

  void DropOwn(const objects::ObjectMeta& metadata) {
    const auto own = own_.find(metadata.name);
    if (own == own_.end() || own->second.object->metadata.uid != metadata.uid) return;
    own_.erase(own);
  }

  void Show(const Pointer& object, std::vector<Pointer>& view) const {
    const auto deleted = deleted_.find(object->metadata.uid);
    if (deleted == deleted_.end()) return view.push_back(object);
    if (!deleted->second) return;
    // Prefer the server's own deletion time, if it is known, to the assumed time.
    if (object->metadata.terminating()) return view.push_back(object);
    auto terminating = std::make_shared<T>(*object);
    const std::chrono::seconds grace(deleted->second->grace_seconds);
    terminating->metadata.deletion_timestamp = deleted->second->requested + grace;
    terminating->metadata.deletion_grace_period_seconds = grace.count();
    view.push_back(std::move(terminating));
  }

  std::map<std::string, Pointer> seen_;  // by name
  std::map<std::string, OwnWrite> own_;  // by name: own creates and changes, not reported yet
  std::map<std::string, std::optional<Deletion>>
      deleted_;                    // by UID: own deletes, not reported yet; nullopt: already gone
  std::set<std::string> doubted_;  // names of objects in deleted_ that a later list contained
};

}  // namespace tfjob::control
