// The API server of one process: objects in memory behind the Client interface, with the semantics
// that controllers rely on.
//
// - Every write gives the object a new resourceVersion (one counter for all kinds); a write that
//   changes nothing keeps it.
// - UIDs are counted behind a prefix and creation times come from the clock: with the same prefix,
//   two runs of a script yield the same objects.
// - Deleting a pod that is bound to a node and not finished marks it as terminating; it is removed
//   when it is deleted with grace period 0 (as a kubelet does). Other pods are removed at once.
// - An object whose owners are all gone is deleted in the same step as the last owner (background
//   propagation).
// - A new pod starts in phase Pending.
// - An object with finalizers stays, terminating, until an update has removed the last of them.
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

struct Options {
  Clock* clock = &RealClock();
  // No thread: watch events wait until Deliver() is called.
  bool deliver_by_hand = false;
  // Keeps changes until Compact(), so that watches can be cut and mended.
  bool keep_changes = false;
  // A new pod without spec.nodeName is bound to this node at once. "": it waits for a patch
  // of spec.nodeName.
  std::string node_name;
  // The beginning of all UIDs, followed by twelve digits of the count. Stores whose objects leave
  // traces outside (folders, checkpoints) need different prefixes: RandomUidPrefix().
  std::string uid_prefix = "00000000-0000-4000-8000-";
};

// Returns 62 random bits as the beginning of a version 4 UUID.
std::string RandomUidPrefix();

// Thread-safe. Subscriptions must be destroyed first.
class Store : public client::Client, public client::Discovery {
 public:
  explicit Store(Options options = {});

  StatusOr<client::Object> Get(const client::Key& key) override;
  StatusOr<Json> GetJson(const client::Key& key) override;
  StatusOr<std::vector<client::Object>> List(client::Kind kind, const std::string& name_space,
                                             const client::LabelSelector& selector) override;
  StatusOr<client::Object> Create(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> Update(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> UpdateStatus(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> Patch(const client::Key& key, const Json& merge_patch) override;
  Status Delete(const client::Key& key, const client::DeleteOptions& options) override;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(client::Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override;

  // Serves every kind, in its newest version.
  StatusOr<std::string> ApiVersion(client::Kind kind) override {
    return std::string(client::NewestApiVersion(kind));
  }

  // With deliver_by_hand: calls the sinks with the waiting events, in the caller's thread, at most
  // `most` times. Returns the number of calls.
  size_t Deliver(size_t most = SIZE_MAX) { return hub_.Deliver(most); }

  // With keep_changes: simulates broken watches of an API server. CutWatches breaks all watches;
  // undelivered events are lost to them. After MendWatches, each continues after the last change
  // that it has seen or, if the history has been compacted since then (410 there), with a whole
  // list. A bookmark confirms to up-to-date watches that they have missed nothing.
  void CutWatches() { hub_.Cut(); }
  void MendWatches();
  void Bookmark();
  void Compact();

  // The approximate heap size of all objects in bytes, decoded forms included.
  size_t Bytes();

 private:
  using Records = std::map<client::Key, Record>;

  StatusOr<Records::iterator> Find(const client::Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the record that `object` names if its preconditions (metadata.resourceVersion,
  // metadata.uid) hold.
  StatusOr<Records::iterator> FindForWrite(const client::Key& key, const Json& object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<client::Object> Replace(Records::iterator found, const Json& object)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores `next`, notifies the watchers and returns the stored object.
  client::Object Commit(Records::iterator found, Record next) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DeleteFound(Records::iterator found, std::optional<int64_t> grace_period_seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the object, unless finalizers keep it; it is then marked as terminating.
  void Remove(Records::iterator found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks it as terminating; its grace period ends `grace_period_seconds` from now.
  void Terminate(Records::iterator found, int64_t grace_period_seconds)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<client::Object> AllOf(client::Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Index(const client::Key& key, const objects::ObjectMeta& metadata)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unindex(const client::Key& key, const objects::ObjectMeta& metadata)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Orphaned(const objects::ObjectMeta& metadata) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NextUid() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NextVersion() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  Mutex mutex_;
  Records records_ ABSL_GUARDED_BY(mutex_);
  std::unordered_set<std::string> uids_ ABSL_GUARDED_BY(mutex_);  // of all objects except events
  std::unordered_map<std::string, std::set<client::Key>> dependents_ ABSL_GUARDED_BY(mutex_);
  int64_t last_uid_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_version_ ABSL_GUARDED_BY(mutex_) = 0;
  WatchHub hub_;
};

}  // namespace tfjob::store
