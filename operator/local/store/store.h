// Implements an API server inside the process: keeps objects in memory behind the Client interface,
// with the semantics that controllers rely on.
//
// - Every write gives the object a new resourceVersion (one counter for all kinds), except a write
//   that changes nothing.
// - UIDs consist of a prefix and a counter, and creation times come from the clock, so two runs of
//   a script with the same prefix yield the same objects.
// - A deleted pod that is bound to a node and has not finished is marked as terminating. It is
//   removed when it is deleted with grace period 0, as by a kubelet. Other pods are removed
//   immediately.
// - An object whose owners are all gone is deleted in the same step as the last owner (background
//   propagation).
// - A new pod starts in phase Pending.
// - A deleted object with finalizers remains, marked as terminating, until an update has removed
//   the last finalizer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "operator/client/client.h"
#include "operator/local/store/record.h"
#include "operator/local/store/watch_hub.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::store {

struct StoreOptions {
  Clock* clock = &RealClock();
  // If true, the store starts no thread, and watch events wait until Deliver() is called.
  bool deliver_by_hand = false;
  // If true, the store keeps changes until Compact(), so that watches can be cut and mended.
  bool keep_changes = false;
  // The node that new pods without spec.nodeName are immediately bound to. If "", such pods wait
  // until a patch sets spec.nodeName.
  std::string node_name;
  // The prefix of every UID. A counter, written as twelve hexadecimal digits, is appended to it.
  // Stores whose objects leave traces outside the store (folders, checkpoints) need different
  // prefixes; see RandomUidPrefix().
  std::string uid_prefix = "00000000-0000-4000-8000-";
};

// Returns the first four groups of a version 4 UUID, with the trailing dash. They contain 74
// random bits.
std::string RandomUidPrefix();

// Stores objects in memory. Thread-safe. Subscriptions must be destroyed before the store.
class Store : public client::Client, public client::Discovery {
 public:
  explicit Store(StoreOptions options = {});

  StatusOr<client::Object> Get(const client::Key& key) override;
  StatusOr<Json> GetJson(const client::Key& key) override;
  StatusOr<std::vector<client::Object>> List(objects::Kind kind, const std::string& name_space,
                                             const client::LabelSelector& selector) override;
  StatusOr<client::Object> Create(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> Update(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> UpdateStatus(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> Patch(const client::Key& key, const Json& merge_patch) override;
  Status Delete(const client::Key& key, const client::DeleteOptions& options) override;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(objects::Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override;

  // Serves every kind, in its newest version.
  StatusOr<std::string> ApiVersion(objects::Kind kind) override {
    return std::string(client::NewestApiVersion(kind));
  }

  // For stores with deliver_by_hand. Passes waiting events to the sinks in the caller's thread,
  // with at most `most` calls. Returns the number of calls.
  size_t Deliver(size_t most = SIZE_MAX) { return hub_.Deliver(most); }

  // Like Deliver(1), but each watch is a separate stream, as on an API server. Delivers the oldest
  // event of one of the watches that have waiting events; `choice`, which may be any number,
  // selects the watch. Returns false if no event is waiting.
  bool DeliverFromOne(uint64_t choice) { return hub_.DeliverFromOne(choice); }

  // These functions simulate the broken watches of an API server, for stores with keep_changes,
  // which only tests use. They are in the store, not in a test double, because a watch must break
  // between two changes, under the store's lock. Without keep_changes, they cost nothing.
  // CutWatches breaks all watches, or those of a kind; CutWatch breaks one, which `choice` selects.
  // Broken watches lose their undelivered events. After MendWatches, each watch continues after the
  // last change that it has seen. If the history has been compacted in the meantime (410 on an API
  // server), the watch instead receives a whole list. A bookmark confirms to up-to-date watches
  // that they have not missed any change.
  void CutWatches() { hub_.Cut(); }
  void CutWatches(client::Kind kind) { hub_.CutKind(kind); }
  void CutWatch(uint64_t choice) { hub_.CutOne(choice); }
  void MendWatches();
  bool HasCutWatch() { return hub_.HasCut(); }
  void Bookmark();
  void Compact();

  // Returns the approximate heap size of all objects in bytes, including decoded forms.
  size_t Bytes();

 private:
  using Records = std::map<client::Key, Record>;

  StatusOr<Records::iterator> Find(const client::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the record of `key`. Returns an error if the preconditions in `object`
  // (metadata.resourceVersion, metadata.uid) are not met.
  StatusOr<Records::iterator> FindForWrite(const client::Key& key, const Json& object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<client::Object> Replace(Records::iterator found, const Json& object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores `next`, notifies the watchers and returns the stored object.
  client::Object Commit(Records::iterator found, Record next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DeleteFound(Records::iterator found, std::optional<int64_t> grace_period_seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the object or, if it has finalizers, marks it as terminating.
  void Remove(Records::iterator found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks the object as terminating; its grace period ends `grace_period_seconds` from now.
  void Terminate(Records::iterator found, int64_t grace_period_seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<client::Object> AllOf(objects::Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Index(const client::Key& key, const objects::ObjectMeta& metadata)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unindex(const client::Key& key, const objects::ObjectMeta& metadata)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Orphaned(const objects::ObjectMeta& metadata) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NextUid() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NextVersion() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StoreOptions options_;
  Mutex mutex_;
  Records records_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<std::string> uids_ ABSL_GUARDED_BY(mutex_);  // of all objects except events
  std::unordered_map<std::string, std::set<client::Key>> dependents_ ABSL_GUARDED_BY(mutex_);
  int64_t last_uid_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_version_ ABSL_GUARDED_BY(mutex_) = 0;
  WatchHub hub_;
};

}  // namespace tfjob::store
