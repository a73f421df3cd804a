// Holds the pods (or services) of one job as the watch has shown them, overlaid with our own writes
// that it has not shown yet: a decision must never rest on a view older than what we did ourselves.
// Not thread-safe: the cache locks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/objects/metadata.h"

namespace tfjob::control {

// An accepted deletion: when it was requested, and how long the object may take.
struct Deletion {
  Time requested;
  int64_t grace_seconds = 0;
};

template <typename T>
class Children {
 public:
  using Pointer = std::shared_ptr<const T>;

  bool empty() const { return seen_.empty() && created_.empty(); }
  // Number of objects that the watch shows.
  size_t size() const { return seen_.size(); }

  // Watch events.
  void Upsert(Pointer object) {
    const objects::ObjectMeta& metadata = object->metadata;
    DropCreated(metadata);
    if (metadata.terminating()) {
      deleted_.erase(metadata.uid);
      doubted_.erase(metadata.name);
    }
    if (const auto found = seen_.find(metadata.name);
        found != seen_.end() && found->second->metadata.uid != metadata.uid) {
      deleted_.erase(found->second->metadata.uid);
      doubted_.erase(metadata.name);
    }
    seen_[metadata.name] = std::move(object);
  }
  void Erase(const objects::ObjectMeta& metadata) {
    DropCreated(metadata);
    doubted_.erase(metadata.name);
    deleted_.erase(metadata.uid);
    const auto found = seen_.find(metadata.name);
    if (found != seen_.end() && found->second->metadata.uid == metadata.uid) seen_.erase(found);
  }
  // Takes a whole list; returns the objects that are gone. What we did may be newer than the list,
  // or older than a restore of the store: it stays until it is confirmed.
  std::vector<Pointer> Replace(std::map<std::string, Pointer> objects) {
    std::vector<Pointer> gone;
    std::set<std::string> listed;
    for (const auto& [name, object] : objects) listed.insert(object->metadata.uid);
    for (auto& [name, object] : seen_) {
      if (listed.count(object->metadata.uid) == 0) gone.push_back(object);
    }
    for (const Pointer& object : gone) deleted_.erase(object->metadata.uid);
    seen_.clear();
    doubted_.clear();
    for (auto& [name, object] : objects) Upsert(std::move(object));
    for (const auto& [name, object] : seen_) {
      if (deleted_.count(object->metadata.uid) > 0) doubted_.insert(name);
    }
    return gone;
  }

  // Records what we created or read. An object that the watch already shows need not be remembered;
  // one that was taken for gone is not gone.
  void RecordCreate(Pointer object, Duration now) {
    const std::string name = object->metadata.name;
    const bool doubted = doubted_.erase(name) > 0 && !object->metadata.terminating();
    const auto deleted = deleted_.find(object->metadata.uid);
    if (deleted != deleted_.end() && (doubted || !deleted->second)) deleted_.erase(deleted);
    const auto found = seen_.find(name);
    if (found != seen_.end() && found->second->metadata.uid == object->metadata.uid) {
      created_.erase(name);
    } else {
      created_[name] = {std::move(object), now};
    }
  }
  // Records a deletion; nullopt: the object is already gone.
  void RecordDelete(const std::string& uid, std::optional<Deletion> ends) {
    for (const auto& [name, object] : seen_) {
      if (object->metadata.uid == uid && (!ends || !object->metadata.terminating())) {
        deleted_[uid] = ends;
      }
    }
    for (auto created = created_.begin(); created != created_.end();) {
      const bool same = created->second.object->metadata.uid == uid;
      if (same && ends) deleted_[uid] = ends;
      created = same && !ends ? created_.erase(created) : std::next(created);
    }
  }
  // Records that `name` turned out not to exist any more.
  void RecordAbsence(const std::string& name) {
    doubted_.erase(name);
    const auto created = created_.find(name);
    if (created == created_.end()) return;
    deleted_.erase(created->second.object->metadata.uid);
    created_.erase(created);
  }

  // Returns the names to be read: of creates that the watch has not shown since `since`, and of
  // objects that we deleted but a list has shown unchanged.
  std::vector<std::string> NamesToRead(Duration since) const {
    std::vector<std::string> names(doubted_.begin(), doubted_.end());
    for (const auto& [name, created] : created_) {
      if (created.at <= since) names.push_back(name);
    }
    return names;
  }
  bool waits_for_watch() const { return !created_.empty(); }

  std::vector<Pointer> View() const {
    std::vector<Pointer> view;
    for (const auto& [name, object] : seen_) {
      if (created_.count(name) == 0) Show(object, view);
    }
    for (const auto& [name, created] : created_) Show(created.object, view);
    return view;
  }

 private:
  struct OwnCreate {
    Pointer object;
    Duration at{0};
  };

  void DropCreated(const objects::ObjectMeta& metadata) {
    const auto created = created_.find(metadata.name);
    if (created == created_.end() || created->second.object->metadata.uid != metadata.uid) return;
    created_.erase(created);
  }

  void Show(const Pointer& object, std::vector<Pointer>& view) const {
    const auto deleted = deleted_.find(object->metadata.uid);
    if (deleted == deleted_.end()) return view.push_back(object);
    if (!deleted->second) return;
    auto terminating = std::make_shared<T>(*object);
    const std::chrono::seconds grace(deleted->second->grace_seconds);
    terminating->metadata.deletion_timestamp = deleted->second->requested + grace;
    terminating->metadata.deletion_grace_period_seconds = grace.count();
    view.push_back(std::move(terminating));
  }

  std::map<std::string, Pointer> seen_;       // by name
  std::map<std::string, OwnCreate> created_;  // by name: ours, not seen yet
  std::map<std::string, std::optional<Deletion>>
      deleted_;                    // by UID: ours, not seen as terminating yet
  std::set<std::string> doubted_;  // names of those in deleted_ that a list has shown since
};

}  // namespace tfjob::control
