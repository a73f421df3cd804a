// Caches the latest state of every object of one kind, as reported by a watch.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::view {

// Receives the events of the watch. Thread-safe.
class ObjectCache : public client::WatchSink {
 public:
  struct Change {
    client::Object object;  // the last state, if the object was deleted
    bool deleted = false;
  };

  // Subscribes to one namespace, or to all if `name_space` is "". `client` must outlive the cache.
  static StatusOr<std::unique_ptr<ObjectCache>> Create(client::Client& client, objects::Kind kind,
                                                       const std::string& name_space = "",
                                                       const client::LabelSelector& selector = {});

  std::map<client::Key, client::Object> Objects();
  // Returns the object; nullopt if it does not exist.
  std::optional<client::Object> Find(const client::Key& key);
  // Returns all changes since the last call, in order. The first changes are the objects that
  // existed when the watch was started. Call this regularly, because the cache keeps all changes
  // that have not been taken.
  std::vector<Change> TakeChanges();

  // Waits for the initial list. Returns false if it has not arrived after `timeout`.
  bool AwaitList(Duration timeout);
  // Waits until there is a change to take. Returns false if no change has arrived after `timeout`.
  bool AwaitChange(Duration timeout);
  // Waits until there are no objects left. Returns false if objects still exist after `timeout`.
  bool AwaitEmpty(Duration timeout);

  void OnReplaced(std::vector<client::Object> objects) override;
  void OnUpserted(client::Object object) override;
  void OnDeleted(client::Object last_state) override;

 private:
  explicit ObjectCache(objects::Kind kind) : kind_(kind) {}
  client::Key KeyOf(const client::Object& object) const;
  template <typename Condition>
  bool Await(Duration timeout, Condition condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const objects::Kind kind_;
  Mutex mutex_;
  CondVar changed_;
  bool listed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<client::Key, client::Object> objects_ ABSL_GUARDED_BY(mutex_);
  std::vector<Change> changes_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<client::Subscription> subscription_;  // declared last, so it is destroyed first
};

}  // namespace tfjob::view
