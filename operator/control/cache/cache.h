// Caches, by job, the TFJobs, pods, services, pod groups and network policies that the watches have
// reported, and the operator's own writes that the watches have not reported yet. The cost of a
// job's snapshot is proportional to its number of pods.
//
// An object is assigned to the TFJob that controls it or, if no TFJob does, to the job that its
// label job-name names. Therefore, if an object of another owner has this label, it is assigned to
// the job, too. Such a pod or service may occupy a name that the job needs, so changes to it cause
// a reconcile of the job.
//
// Watches are grouped into scopes. A scope is one namespace or all namespaces, and has its own
// sinks. A new list replaces only the objects of its own scope.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "operator/client/client.h"
#include "operator/control/cache/children.h"
#include "operator/control/cache/pack_job.h"
#include "operator/control/measurements/numbers.h"
#include "operator/control/queue/fair_queue.h"
#include "operator/policy/facts/snapshot.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Stores what the sinks receive, and answers queries by job. Thread-safe. The client calls the
// sinks. Workers call all other functions, one worker at a time per job.
class Cache {
 public:
  // Called with the key ("namespace/name") of each job that a change affects. Must not call the
  // cache.
  using Changed = std::function<void(const std::string&, Urgency)>;
  Cache(Clock& clock, Changed changed);

  // The sinks for one namespace ("" means all namespaces). They are valid as long as the cache
  // exists.
  struct Scope {
    client::WatchSink& jobs;
    client::WatchSink& pods;
    client::WatchSink& services;
  };
  Scope AddScope(const std::string& name_space);
  // Adds a sink for a kind of pod group, for Kubernetes' Workloads, or for network policies, in
  // `name_space`. If `required`, Synced() returns false until the sink's first list has arrived.
  // Synced(key) ignores that list, because it matters only to jobs that have such an object. For
  // those jobs, call GroupsSynced.
  client::WatchSink& AddGroups(objects::Kind kind, const std::string& name_space, bool required);
  // Removes the sinks of the kind, which must not be called afterwards. The objects that they have
  // reported remain until a new list replaces them.
  void DropGroups(objects::Kind kind);
  // Returns true if every sink for the kind has received its first list, and there is at least one
  // such sink.
  bool GroupsSynced(objects::Kind kind);
  // Returns true if every required sink has received its first list.
  bool Synced();
  // Returns true if the first lists of jobs, pods and services that cover the job have arrived. The
  // job can then be reconciled, unless it must also wait for the objects of its gang or for its
  // NetworkPolicy (GroupsSynced).
  bool Synced(const std::string& key);
  // Returns the required lists that have not arrived yet, such as "TFJob" or "Pod in namespace a".
  std::vector<std::string> MissingLists();

  CacheNumbers Count();

  // Returns the newest known version of the job; nullptr if there is none. Parses the job's text,
  // so avoid calling this for many jobs.
  std::shared_ptr<const objects::CustomResource> Job(const std::string& key);
  // Returns true if the job with UID `uid` still exists and is not being deleted. Cheap.
  bool JobExists(const std::string& key, const std::string& uid);
  // Returns the objects of the job with UID `uid`. The caller fills in the other fields of
  // the snapshot.
  policy::Snapshot SnapshotOf(const std::string& key, const std::string& uid);

  // Record the operator's own writes. In RecordWrite, `newer` is the job as the operator wrote or
  // read it when `base` was the newest known version. `newer` is used until the watch reports it or
  // an even newer version. RecordWrite and RecordCreate do nothing if the job is no longer known.
  void RecordWrite(const std::string& key, const std::string& base, const client::Object& newer);
  void RecordCreate(const std::string& key, objects::Kind kind, const client::Object& object);
  // `newer` is the NetworkPolicy that resulted when the operator changed version `base`, the newest
  // known version.
  void RecordPolicyChange(const std::string& key, const std::string& base,
                          const client::Object& newer);
  void RecordDelete(const std::string& key, const std::string& uid, const Deletion& deletion);
  void RecordGone(const std::string& key, const std::string& uid);
  // Returns the UIDs of objects that were assigned to this job but belonged to other owners, and
  // that have disappeared since the last call.
  std::vector<std::string> TakeFreed(const std::string& key);
  // Records that the caller has handled the departed pods in `snapshot` (those that have
  // disappeared). Later snapshots omit them.
  void Acknowledge(const std::string& key, const policy::Snapshot& snapshot);

  // Returns true if a list contained a version of the job from before the operator's own write.
  // Either the list was read before the write, or the store was restored to an earlier state. The
  // caller must read the job and call RecordWrite.
  bool IsInDoubt(const std::string& key);
  // Returns the objects that the caller must read and pass to RecordRead. These are objects that
  // the operator created or changed at least `patience` ago, if the watch has not reported the
  // write yet, and objects that the operator deleted, if a later list still contains them.
  std::vector<client::Key> ObjectsToRead(const std::string& key, Duration patience);
  // Records the result of a read. `found` is nullopt if the object does not exist.
  void RecordRead(const std::string& key, const client::Key& object,
                  const std::optional<client::Object>& found);
  // Returns true if the watch has not yet reported all objects that the operator created or
  // changed.
  bool WaitsForWatch(const std::string& key);

 private:
  using PackedJob = std::shared_ptr<const objects::PackedResource>;

  struct Entry {
    PackedJob seen;
    PackedJob written;                 // newer than seen, or null
    std::set<std::string> superseded;  // known versions older than `written`
    bool doubted = false;              // a list contained an older version
    const PackedJob& newest() const { return written != nullptr ? written : seen; }
    Children<objects::Pod> pods;
    Children<objects::Service> services;
    std::map<objects::Kind, Children<objects::CustomResource>> groups;  // workloads, policies
    std::vector<std::shared_ptr<const objects::Pod>> departed;
    std::vector<std::string> freed;
  };

  // Implements the common part of all sinks: the kind and namespace that a sink covers, and whether
  // its first list has arrived.
  class Sink : public client::WatchSink {
   public:
    Sink(Cache& cache, objects::Kind kind, std::string name_space)
        : cache_(cache), kind_(kind), name_space_(std::move(name_space)) {}

    objects::Kind kind() const { return kind_; }
    const std::string& name_space() const { return name_space_; }
    // Returns true if the job with key `key` is in this scope.
    bool Covers(const std::string& key) const;
    // Returns true if the first list has arrived or is not required.
    bool ready() const { return synced || !required; }
    // Returns true if the jobs of the scope must wait for this sink's first list.
    bool holds_back_jobs() const { return !synced && !objects::IsOnePerJob(kind_); }
    bool synced = false;   // guarded by the cache's lock
    bool required = true;  // does not change once the sink is added

   protected:
    // Records that a list has arrived. If it is the first list, and no other sink holds back the
    // jobs of the scope, reports all these jobs as changed, because workers have skipped them so
    // far.
    void RecordList() ABSL_EXCLUSIVE_LOCKS_REQUIRED(cache_.mutex_);

    Cache& cache_;

   private:
    const objects::Kind kind_;
    const std::string name_space_;
  };

  class JobSink : public Sink {
   public:
    using Sink::Sink;
    void OnReplaced(std::vector<client::Object> objects) override;
    void OnUpserted(client::Object object) override;
    void OnDeleted(client::Object last_state) override;
  };

  template <typename T>
  class ChildSink : public Sink {
   public:
    using Sink::Sink;
    void OnReplaced(std::vector<client::Object> objects) override;
    void OnUpserted(client::Object object) override;
    void OnDeleted(client::Object last_state) override;

   private:
    Children<T>& ChildrenOf(Entry& entry) const;
  };

  // Returns true if the job must be reconciled, because this version is not the operator's
  // own write.
  bool Upsert(PackedJob job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the job from an entry, but not the objects that the watches have reported.
  static void ForgetJob(Entry& entry);
  template <typename T>
  static void RecordDeparture(Entry& entry, const std::shared_ptr<const T>& child);
  void DropIfEmpty(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const Changed changed_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Sink>> sinks_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::control
