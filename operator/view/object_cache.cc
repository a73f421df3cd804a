#include "operator/view/object_cache.h"

#include <utility>

#include "operator/objects/metadata.h"

namespace tfjob::view {

StatusOr<std::unique_ptr<ObjectCache>> ObjectCache::Create(client::Client& client,
                                                           objects::Kind kind,
                                                           const std::string& name_space,
                                                           const client::LabelSelector& selector) {
  std::unique_ptr<ObjectCache> cache(new ObjectCache(kind));
  ASSIGN_OR_RETURN(cache->subscription_, client.Subscribe(kind, name_space, selector, *cache));
  return cache;
}

client::Key ObjectCache::KeyOf(const client::Object& object) const {
  const objects::ObjectMeta& metadata = client::MetadataOf(object);
  return {kind_, metadata.name_space, metadata.name};
}

std::map<client::Key, client::Object> ObjectCache::Objects() {
  MutexLock lock(mutex_);
  return objects_;
}

std::optional<client::Object> ObjectCache::Find(const client::Key& key) {
  MutexLock lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

std::vector<ObjectCache::Change> ObjectCache::TakeChanges() {
  MutexLock lock(mutex_);
  return std::exchange(changes_, {});
}

template <typename Condition>
bool ObjectCache::Await(Duration timeout, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (!changed_.WaitUntil(mutex_, deadline)) return condition();
  }
  return true;
}

bool ObjectCache::AwaitList(Duration timeout) {
  MutexLock lock(mutex_);
  return Await(timeout, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return listed_; });
}

bool ObjectCache::AwaitChange(Duration timeout) {
  MutexLock lock(mutex_);
  return Await(timeout, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !changes_.empty(); });
}

bool ObjectCache::AwaitEmpty(Duration timeout) {
  MutexLock lock(mutex_);
  return Await(timeout, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return objects_.empty(); });
}

void ObjectCache::OnReplaced(std::vector<client::Object> objects) {
  MutexLock lock(mutex_);
  std::map<client::Key, client::Object> before = std::exchange(objects_, {});
  for (client::Object& object : objects) {
    const client::Key key = KeyOf(object);
    const auto known = before.find(key);
    const bool same = known != before.end() && client::MetadataOf(known->second).resource_version ==
                                                   client::MetadataOf(object).resource_version;
    if (known != before.end()) before.erase(known);
    if (!same) changes_.push_back({object});
    objects_.insert_or_assign(key, std::move(object));
  }
  for (auto& [key, object] : before) changes_.push_back({std::move(object), true});
  listed_ = true;
  changed_.NotifyAll();
}

void ObjectCache::OnUpserted(client::Object object) {
  MutexLock lock(mutex_);
  changes_.push_back({object});
  objects_.insert_or_assign(KeyOf(object), std::move(object));
  changed_.NotifyAll();
}

void ObjectCache::OnDeleted(client::Object last_state) {
  MutexLock lock(mutex_);
  objects_.erase(KeyOf(last_state));
  changes_.push_back({std::move(last_state), true});
  changed_.NotifyAll();
}

}  // namespace tfjob::view
