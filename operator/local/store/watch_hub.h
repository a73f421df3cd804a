// The store's watchers. Changes are queued in the order of their commits and given to the sinks by
// one thread, or by Deliver().
//
// With `keep_changes` watches can break as those of an API server do. A cut watch gets nothing; what
// was on its way is lost to it. Mended, it goes on after the last change that it has seen, if the
// history still reaches back to there; else everything is listed anew (an API server's 410). A
// bookmark tells a watch that it has missed nothing, so that a compaction does it no harm.
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
  // Every subscription must be gone.
  ~WatchHub();

  // Starts with `objects` (those that match), which are as they were at `version`; what is published later follows.
  std::unique_ptr<client::Subscription> Subscribe(client::Kind kind, std::string name_space,
                                                  client::LabelSelector selector,
                                                  client::WatchSink& sink,
                                                  std::vector<client::Object> objects,
                                                  int64_t version);
  bool HasWatchers(client::Kind kind);

  // `before` and `after` point to the object's versions; null: it did not or does not exist. In
  // commit order; `version` is the change's.
  void Publish(client::Kind kind, const client::Object* before, const client::Object* after,
               int64_t version);

  // At most so many calls of sinks; how many there were.
  size_t Deliver(size_t most);

  void Cut();
  // `list` gives all objects of a kind, as they are at `version`.
  void Mend(const std::function<std::vector<client::Object>(client::Kind)>& list, int64_t version);
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
  // One change of an object, for watches that come back.
  struct Kept {
    int64_t version = 0;
    client::Kind kind = client::Kind::kPod;
    std::optional<client::Object> before;
    std::optional<client::Object> after;
  };

  void Push(const std::shared_ptr<Watch>& watch, Change::Type type,
            std::vector<client::Object> objects, int64_t version)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const std::shared_ptr<Watch>& watch, const client::Object* before,
            const client::Object* after, int64_t version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool DeliverOne();
  void Serve();
  void End(const std::shared_ptr<Watch>& watch);

  const bool by_hand_;
  const bool keep_changes_;
  Mutex mutex_;
  CondVar changed_;  // something to deliver, a delivery ended, or stopping
  std::vector<std::shared_ptr<Watch>> watches_ ABSL_GUARDED_BY(mutex_);
  std::deque<Change> changes_ ABSL_GUARDED_BY(mutex_);
  std::deque<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // since the last compaction
  int64_t compacted_ ABSL_GUARDED_BY(mutex_) = 0;
  const Watch* delivering_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::store
