// Collects the objects of a list that arrives in parts, and the changes to them that arrive before
// the list is complete.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "operator/client/client.h"
#include "operator/kube/client/decode.h"
#include "operator/objects/metadata.h"

namespace tfjob::kube {

// Collects one list. Not thread-safe.
class ListCollector {
 public:
  void Clear() { *this = ListCollector(); }

  void Add(std::vector<client::Object> objects) {
    if (objects_.empty()) {
      objects_ = std::move(objects);
    } else {
      std::move(objects.begin(), objects.end(), std::back_inserter(objects_));
    }
  }
  // Adds an event of a streaming list, in which objects may change before the list is complete.
  void Add(EventType type, client::Object object) {
    if (type != EventType::kAdded) changed_ = true;
    if (type == EventType::kDeleted) gone_.insert(objects_.size());
    objects_.push_back(std::move(object));
  }

  // Returns the newest state of each object that was not deleted, and empties the collector.
  std::vector<client::Object> Take() {
    std::vector<client::Object> objects = changed_ ? Newest() : std::move(objects_);
    Clear();
    return objects;
  }

 private:
  std::vector<client::Object> Newest() {
    std::vector<client::Object> newest;
    std::unordered_set<std::string> seen;
    for (size_t i = objects_.size(); i-- > 0;) {
      const objects::ObjectMeta& metadata = client::MetadataOf(objects_[i]);
      const bool known = !seen.insert(StrCat(metadata.name_space, "/", metadata.name)).second;
      if (!known && gone_.count(i) == 0) newest.push_back(std::move(objects_[i]));
    }
    return newest;
  }

  std::vector<client::Object> objects_;
  std::unordered_set<size_t> gone_;  // indices in objects_ of deleted objects
  bool changed_ = false;             // an object was modified or deleted
};

}  // namespace tfjob::kube
