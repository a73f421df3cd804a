// What the watches have shown of TFJobs, their pods and services, indexed by job, together with our own writes that
// the watches have not shown yet. A look costs as much as the job has pods.
//
// A pod belongs to the job that its controller reference names, or else to the one that its label job-name names, so
// that a change of an object that only blocks a name wakes the job too.
//
// What is watched comes in scopes: a namespace, or all of them, each with sinks of its own. A list that is shown anew
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

// Null for an object of another form: a client that mixes kinds up must not take the operator down.
template <typename T>
std::shared_ptr<const T> As(const client::Object& object) {
  const auto* held = std::get_if<std::shared_ptr<const T>>(&object);
  return held == nullptr ? nullptr : *held;
}

// As the client calls the pod groups of that scheduler.
client::Kind PodGroupKind(policy::GangScheduler scheduler);

// Thread-safe. The sinks are called by the client, everything else by workers, one a job.
class Cache {
 public:
  // `changed` is called with the key ("namespace/name") of each job about which something has changed; it must not
  // call back.
  Cache(Clock& clock, std::function<void(const std::string&)> changed);

  // The sinks of one namespace ("": of all); they live as long as the cache.
  struct Scope {
    client::WatchSink& jobs;
    client::WatchSink& pods;
    client::WatchSink& services;
  };
  Scope AddScope(const std::string& name_space);
  // One for a kind of pod groups, or for Kubernetes' workloads, in that namespace. Unless it is `required`, Synced() does
  // not wait for it.
  client::WatchSink& AddGroups(client::Kind kind, const std::string& name_space, bool required);
  // Its sinks, which nobody writes to any more. What they showed stays until another list replaces it.
  void DropGroups(client::Kind kind);
  // Whether the groups of that kind are known: a sink for them was added, and all have shown their first list.
  bool GroupsSynced(client::Kind kind);
  // Whether every sink (that is required) has shown its first list; of that job's scope alone.
  bool Synced();
  bool Synced(const std::string& key);
  // The lists that are missing: "TFJob", or "Pod in namespace a".
  std::vector<std::string> Waiting();

  // What is held, for gauges.
  struct Numbers {
    // By namespace and state: the newest condition that is True, "Pending" without one.
    std::map<std::pair<std::string, std::string>, int64_t> jobs;
    int64_t pods = 0;
    int64_t services = 0;
  };
  Numbers Count();

  // The newest known version, or nullptr. Reads its text: not for each of many.
  std::shared_ptr<const objects::CustomResource> Job(const std::string& key);
  // Whether that job is still there and not on its way out. Cheap.
  bool Stands(const std::string& key, const std::string& uid);
  // The job's children, `uid` being its own; history and nodes are the caller's to add.
  policy::Snapshot Look(const std::string& key, const std::string& uid);

  // Own writes. `newer` was written or read by us when `base` was the newest known version; it stands until the watch
  // shows it or something newer.
  void Wrote(const std::string& key, const std::string& base,
             std::shared_ptr<const objects::CustomResource> newer);
  void Created(const std::string& key, client::Kind kind, const client::Object& object);
  void Deleted(const std::string& key, const std::string& uid, const Deletion& deletion);
  void Gone(const std::string& key, const std::string& uid);
  // UIDs of objects of others under this job's names that have gone since the last call.
  std::vector<std::string> TakeFreed(const std::string& key);
  // The departed pods of a look are dealt with.
  void Acknowledge(const std::string& key, const policy::Snapshot& looked);

  // Whether a list has shown the job as it was before we wrote it: it was read before, or the store was put back to an
  // earlier state. It is to be read, and Wrote.
  bool Doubted(const std::string& key);
  // Creates of ours that the watch has not shown for `patience`, and what a list shows although we deleted it: to be
  // Read.
  std::vector<client::Key> Unconfirmed(const std::string& key, Duration patience);
  // What was found; nullopt: it does not exist.
  void Read(const std::string& key, const client::Key& object,
            const std::optional<client::Object>& found);
  // Whether creates of ours wait to be shown.
  bool WaitsForWatch(const std::string& key);

 private:
  struct Entry {
    std::shared_ptr<const PackedJob> seen;
    std::shared_ptr<const PackedJob> written;  // newer than seen, or null
    std::set<std::string> superseded;          // versions older than `written`
    bool doubted = false;                      // `written`, by a list
    const std::shared_ptr<const PackedJob>& newest() const {
      return written != nullptr ? written : seen;
    }
    Children<objects::Pod> pods;
    Children<objects::Service> services;
    std::map<client::Kind, Children<objects::CustomResource>> groups;  // and workloads
    std::vector<std::shared_ptr<const objects::Pod>> departed;
    std::vector<std::string> freed;
  };

  // What the sinks have in common: whose they are, and whether their first list is there.
  class Sink : public client::WatchSink {
   public:
    Sink(Cache& cache, client::Kind kind, std::string name_space)
        : cache_(cache), kind_(kind), name_space_(std::move(name_space)) {}

    client::Kind kind() const { return kind_; }
    const std::string& name_space() const { return name_space_; }
    // Whether the job of that key lies in this scope.
    bool Covers(const std::string& key) const;
    // Whether what it shows may be acted on, as far as this list is concerned.
    bool ready() const { return synced || !required; }
    bool synced = false;   // under the cache's lock
    bool required = true;  // never changes once it is added

   protected:
    // A list has come. With the last first list of a scope all its jobs are told of: what came before was left.
    void NoteList();

    Cache& cache_;

   private:
    const client::Kind kind_;
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

  // Whether the job has to be looked at.
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
