// Holds what the watches have shown of TFJobs, their pods and services, indexed by job, together
// with our own writes that the watches have not shown yet. Looking at a job costs as much as
// it has pods.
//
// A pod belongs to the job that its controller reference names, or else to the job that its label
// job-name names, so that a change to an object that only blocks a name also wakes the job.
//
// Watches come in scopes: one namespace, or all of them, each with its own sinks. A new list
// replaces what its scope held before, and nothing else.
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
#include "operator/control/children.h"
#include "operator/control/packed_job.h"
#include "operator/policy/facts/snapshot.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Thread-safe. The client calls the sinks; workers call everything else, one worker per job.
class Cache {
 public:
  // `changed` is called with the key ("namespace/name") of each job that something has changed
  // about; it must not call back.
  Cache(Clock& clock, std::function<void(const std::string&)> changed);

  // The sinks of one namespace ("" for all); they live as long as the cache.
  struct Scope {
    client::WatchSink& jobs;
    client::WatchSink& pods;
    client::WatchSink& services;
  };
  Scope AddScope(const std::string& name_space);
  // Adds a sink for one kind of pod groups, or for Kubernetes' workloads, in that namespace.
  // Synced() waits for it only if it is `required`.
  client::WatchSink& AddGroups(objects::Kind kind, const std::string& name_space, bool required);
  // Removes the sinks of that kind; nothing may write to them any more. What they showed stays
  // until another list replaces it.
  void DropGroups(objects::Kind kind);
  // True if the groups of that kind are known: a sink for them was added, and all such sinks have
  // shown their first list.
  bool GroupsSynced(objects::Kind kind);
  // True if every required sink has shown its first list. With a key, considers only the scope
  // of that job.
  bool Synced();
  bool Synced(const std::string& key);
  // Returns the lists that are missing: "TFJob", or "Pod in namespace a".
  std::vector<std::string> Waiting();

  // Numbers of objects held, for gauges.
  struct Numbers {
    // By namespace and state: the newest condition that is True, or "Pending" without one.
    std::map<std::pair<std::string, std::string>, int64_t> jobs;
    int64_t pods = 0;
    int64_t services = 0;
  };
  Numbers Count();

  // Returns the newest known version, or nullptr. Parses its text, so avoid calling it
  // for many jobs.
  std::shared_ptr<const objects::CustomResource> Job(const std::string& key);
  // True if that job still exists and is not being deleted. Cheap.
  bool Stands(const std::string& key, const std::string& uid);
  // Returns the children of the job with UID `uid`. The caller adds history and nodes.
  policy::Snapshot Look(const std::string& key, const std::string& uid);

  // Own writes. `newer` was written or read by us when `base` was the newest known version; it
  // holds until the watch shows it or something newer.
  void Wrote(const std::string& key, const std::string& base,
             std::shared_ptr<const objects::CustomResource> newer);
  void Created(const std::string& key, objects::Kind kind, const client::Object& object);
  void Deleted(const std::string& key, const std::string& uid, const Deletion& deletion);
  void Gone(const std::string& key, const std::string& uid);
  // Returns the UIDs of other owners' objects under this job's names that have gone since
  // the last call.
  std::vector<std::string> TakeFreed(const std::string& key);
  // Marks the departed pods of a look as dealt with.
  void Acknowledge(const std::string& key, const policy::Snapshot& looked);

  // True if a list has shown the job as it was before our write: the list was read before
  // the write, or the store was restored to an earlier state. The caller must read the job
  // and call Wrote.
  bool Doubted(const std::string& key);
  // Returns creates of ours that the watch has not shown for `patience`, and objects that a list
  // shows although we deleted them. The caller must read them and call Read.
  std::vector<client::Key> Unconfirmed(const std::string& key, Duration patience);
  // Records the result of a read; nullopt: the object does not exist.
  void Read(const std::string& key, const client::Key& object,
            const std::optional<client::Object>& found);
  // True if creates of ours are waiting to be shown.
  bool WaitsForWatch(const std::string& key);

 private:
  struct Entry {
    std::shared_ptr<const PackedJob> seen;
    std::shared_ptr<const PackedJob> written;  // newer than seen, or null
    std::set<std::string> superseded;          // versions older than `written`
    bool doubted = false;                      // a list casts doubt on `written`
    const std::shared_ptr<const PackedJob>& newest() const {
      return written != nullptr ? written : seen;
    }
    Children<objects::Pod> pods;
    Children<objects::Service> services;
    std::map<objects::Kind, Children<objects::CustomResource>> groups;  // and workloads
    std::vector<std::shared_ptr<const objects::Pod>> departed;
    std::vector<std::string> freed;
  };

  // Common part of the sinks: which kind and namespace they cover, and whether their first
  // list has come.
  class Sink : public client::WatchSink {
   public:
    Sink(Cache& cache, objects::Kind kind, std::string name_space)
        : cache_(cache), kind_(kind), name_space_(std::move(name_space)) {}

    objects::Kind kind() const { return kind_; }
    const std::string& name_space() const { return name_space_; }
    // True if the job with that key lies in this scope.
    bool Covers(const std::string& key) const;
    // True if what the cache shows may be acted on, as far as this list is concerned.
    bool ready() const { return synced || !required; }
    bool synced = false;   // guarded by the cache's lock
    bool required = true;  // never changes after it is added

   protected:
    // Notes that a list has come. The last first list of a scope reports all its jobs as changed,
    // because earlier changes were skipped.
    void NoteList() ABSL_EXCLUSIVE_LOCKS_REQUIRED(cache_.mutex_);

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
    Children<T>& Of(Entry& entry) const;
  };

  // Returns whether the job has to be reconciled.
  bool Upsert(std::shared_ptr<const PackedJob> job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename T>
  static void Depart(Entry& entry, const std::shared_ptr<const T>& child);
  void DropIfEmpty(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const std::function<void(const std::string&)> changed_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Sink>> sinks_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::control
