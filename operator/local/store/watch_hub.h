// Manages the store's watchers. Changes are queued in commit order and passed to the sinks by one
// thread, or by calls of Deliver() or DeliverFromOne(). DeliverFromOne() keeps the order only
// within each watch.
//
// With `keep_changes`, watches can break like those of an API server. A watch that is cut receives
// no events, and loses its undelivered events. A mended watch continues after the last change that
// it has seen. If the history no longer contains this change, the watch receives a new list (as
// after an API server's 410). A bookmark confirms to an up-to-date watch that it has not missed any
// change, so that a later compaction does not affect the watch.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/mutex.h"

namespace tfjob::store {

class WatchHub {
 public:
  WatchHub(bool by_hand, bool keep_changes);
  // All subscriptions must be destroyed first.
  ~WatchHub();

  // Adds a watch. Its sink first receives the matching objects among `objects`, in their states at
  // `version`, and then all later changes.
  std::unique_ptr<client::Subscription> Subscribe(objects::Kind kind, std::string name_space,
                                                  client::LabelSelector selector,
                                                  client::WatchSink& sink,
                                                  std::vector<client::Object> objects,
                                                  int64_t version);
  bool HasWatchers(objects::Kind kind);

  // Reports a change to the matching watches. `before` and `after` are the states of the object, or
  // null if it did not exist before or does not exist after the change. `version` is the version of
  // the change. Must be called in commit order.
  void Publish(objects::Kind kind, const client::Object* before, const client::Object* after,
               int64_t version);

  // Calls sinks at most `most` times, in commit order. Returns the number of calls.
  size_t Deliver(size_t most);
  // Delivers the oldest waiting event of one of the watches that have waiting events; `choice`
  // selects the watch. Returns false if no event is waiting.
  bool DeliverFromOne(uint64_t choice);

  // Cut all watches, the watches of a kind, or the single watch that `choice` selects.
  void Cut();
  void CutKind(objects::Kind kind);
  void CutOne(uint64_t choice);
  // Returns whether any existing watch is cut.
  bool HasCut();
  // Mends all watches. `list` returns all objects of a kind, as of `version`.
  void Mend(const std::function<std::vector<client::Object>(objects::Kind)>& list, int64_t version);
  void Bookmark(int64_t version);
  void Compact(int64_t version);

 private:
  class Watch;
  struct Change {
    enum class Type { kReplaced, kUpserted, kDeleted };
    std::shared_ptr<Watch> watch;
    Type type;
    std::vector<client::Object> objects;
    int64_t version = 0;
  };
  // Records a change to an object, for mended watches.
  struct Kept {
    int64_t version = 0;
    objects::Kind kind = objects::Kind::kPod;
    std::optional<client::Object> before;
    std::optional<client::Object> after;
  };

  void Push(const std::shared_ptr<Watch>& watch, Change::Type type,
            std::vector<client::Object> objects, int64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const std::shared_ptr<Watch>& watch, const client::Object* before,
            const client::Object* after, int64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DeliverOne();
  void Pass(Change change);
  void Serve();
  void End(const std::shared_ptr<Watch>& watch);

  const bool by_hand_;
  const bool keep_changes_;
  Mutex mutex_;
  CondVar changed_;  // notified when a change is queued, a delivery ends or stopping_ is set
  std::vector<std::shared_ptr<Watch>> watches_ ABSL_GUARDED_BY(mutex_);
  std::deque<Change> changes_ ABSL_GUARDED_BY(mutex_);
  std::deque<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // changes since the last compaction
  int64_t compacted_ ABSL_GUARDED_BY(mutex_) = 0;
  const Watch* delivering_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::store
