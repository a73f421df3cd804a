// The newest state of every object of one kind, fed by a watch.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/mutex.h"

namespace tfjob::cmd {

// Thread-safe.
class ObjectCache : public client::WatchSink {
 public:
  // Subscribes to all namespaces. `client` must outlive it.
  static StatusOr<std::unique_ptr<ObjectCache>> Create(client::Client& client, client::Kind kind);

  std::map<client::Key, client::Object> Objects();
  // Every state that came since the last call, in order; of a deleted object its last one.
  std::vector<client::Object> TakeChanges();

  // False when there are still objects after `timeout`.
  bool AwaitEmpty(Duration timeout);

  void OnReplaced(std::vector<client::Object> objects) override;
  void OnUpserted(client::Object object) override;
  void OnDeleted(client::Object last_state) override;

 private:
  explicit ObjectCache(client::Kind kind) : kind_(kind) {}
  client::Key KeyOf(const client::Object& object) const;

  const client::Kind kind_;
  Mutex mutex_;
  CondVar emptied_;
  std::map<client::Key, client::Object> objects_ ABSL_GUARDED_BY(mutex_);
  std::vector<client::Object> changes_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<client::Subscription> subscription_;  // ends before the rest goes
};

}  // namespace tfjob::cmd
