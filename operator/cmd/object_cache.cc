#include "operator/cmd/object_cache.h"

#include <utility>

namespace tfjob::cmd {

StatusOr<std::unique_ptr<ObjectCache>> ObjectCache::Create(client::Client& client,
                                                           client::Kind kind) {
  std::unique_ptr<ObjectCache> cache(new ObjectCache(kind));
  ASSIGN_OR_RETURN(cache->subscription_, client.Subscribe(kind, "", {}, *cache));
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

std::vector<client::Object> ObjectCache::TakeChanges() {
  MutexLock lock(mutex_);
  return std::exchange(changes_, {});
}

bool ObjectCache::AwaitEmpty(Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  MutexLock lock(mutex_);
  while (!objects_.empty()) {
    if (!emptied_.WaitUntil(mutex_, deadline)) return objects_.empty();
  }
  return true;
}

void ObjectCache::OnReplaced(std::vector<client::Object> objects) {
  MutexLock lock(mutex_);
  objects_.clear();
  for (client::Object& object : objects) {
    changes_.push_back(object);
    objects_.insert_or_assign(KeyOf(object), std::move(object));
  }
}

void ObjectCache::OnUpserted(client::Object object) {
  MutexLock lock(mutex_);
  changes_.push_back(object);
  objects_.insert_or_assign(KeyOf(object), std::move(object));
}

void ObjectCache::OnDeleted(client::Object last_state) {
  MutexLock lock(mutex_);
  objects_.erase(KeyOf(last_state));
  if (objects_.empty()) emptied_.NotifyAll();
  changes_.push_back(std::move(last_state));
}

}  // namespace tfjob::cmd
