// The store's watchers. Changes are queued in the order of their commits and given to the sinks by
// one thread, or by Deliver().
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/mutex.h"

namespace tfjob::store {

class WatchHub {
 public:
  explicit WatchHub(bool by_hand);
  // Every subscription must be gone.
  ~WatchHub();

  // Starts with `objects` (those that match); what is published later follows.
  std::unique_ptr<client::Subscription> Subscribe(client::Kind kind, std::string name_space,
                                                  client::LabelSelector selector,
                                                  client::WatchSink& sink,
                                                  std::vector<client::Object> objects);
  bool HasWatchers(client::Kind kind);

  // `before` and `after` point to the object's versions; null: it did not or does not exist. In
  // commit order.
  void Publish(client::Kind kind, const client::Object* before, const client::Object* after);

  size_t Deliver();

 private:
  class Watch;
  struct Change {
    enum class Type { kReplaced, kUpserted, kDeleted };
    std::shared_ptr<Watch> watch;
    Type type;
    std::vector<client::Object> objects;
  };

  void Push(const std::shared_ptr<Watch>& watch, Change::Type type,
            std::vector<client::Object> objects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DeliverOne();
  void Serve();
  void End(const std::shared_ptr<Watch>& watch);

  const bool by_hand_;
  Mutex mutex_;
  CondVar changed_;  // something to deliver, a delivery ended, or stopping
  std::vector<std::shared_ptr<Watch>> watches_ ABSL_GUARDED_BY(mutex_);
  std::deque<Change> changes_ ABSL_GUARDED_BY(mutex_);
  const Watch* delivering_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::store
