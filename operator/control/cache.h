// What the watches have shown of TFJobs, their pods and services, indexed by job, together with our own writes that
// the watches have not shown yet. A look costs as much as the job has pods.
//
// A pod belongs to the job that its controller reference names, or else to the one that its label job-name names, so
// that a change of an object that only blocks a name wakes the job too.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "operator/client/client.h"
#include "operator/control/children.h"
#include "operator/policy/snapshot.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::control {

// Thread-safe. The sinks are called by the client, everything else by workers, one a job.
class Cache {
 public:
  // `changed` is called with the key ("namespace/name") of each job about which something has changed; it must not
  // call back.
  Cache(Clock& clock, std::function<void(const std::string&)> changed);

  client::WatchSink& jobs() { return jobs_; }
  client::WatchSink& pods() { return pods_; }
  client::WatchSink& services() { return services_; }
  // Whether all three have shown their first list.
  bool Synced();

  // The newest known version, or nullptr.
  std::shared_ptr<const objects::CustomResource> Job(const std::string& key);
  // The job's children, `uid` being its own; history and nodes are the caller's to add.
  policy::Snapshot Look(const std::string& key, const std::string& uid);

  // Own writes. `newer` was written or read by us when `base` was the newest known version; it stands until the watch
  // shows it or something newer.
  void Wrote(const std::string& key, const std::string& base,
             std::shared_ptr<const objects::CustomResource> newer);
  void Created(const std::string& key, const client::Object& object);
  void Deleted(const std::string& key, const std::string& uid, const Deletion& deletion);
  void Gone(const std::string& key, const std::string& uid);
  // UIDs of objects of others under this job's names that have gone since the last call.
  std::vector<std::string> TakeFreed(const std::string& key);
  // The departed pods of a look are dealt with.
  void Acknowledge(const std::string& key, const policy::Snapshot& looked);

  // Creates of ours that the watch has not shown for `patience`: to be read, then Created again or Unconfirmed.
  std::vector<client::Key> Unconfirmed(const std::string& key, Duration patience);
  void Unconfirm(const client::Key& object, const std::string& key);
  // Whether creates of ours wait to be shown.
  bool WaitsForWatch(const std::string& key);

 private:
  struct Entry {
    std::shared_ptr<const objects::CustomResource> seen;
    std::shared_ptr<const objects::CustomResource> written;  // newer than seen, or null
    std::set<std::string> superseded;                        // versions older than `written`
    Children<objects::Pod> pods;
    Children<objects::Service> services;
    std::vector<std::shared_ptr<const objects::Pod>> departed;
    std::vector<std::string> freed;
  };

  class JobSink : public client::WatchSink {
   public:
    explicit JobSink(Cache& cache) : cache_(cache) {}
    void OnReplaced(std::vector<client::Object> objects) override;
    void OnUpserted(client::Object object) override;
    void OnDeleted(client::Object last_state) override;

   private:
    Cache& cache_;
  };

  template <typename T>
  class ChildSink : public client::WatchSink {
   public:
    ChildSink(Cache& cache, Children<T> Entry::* children) : cache_(cache), children_(children) {}
    void OnReplaced(std::vector<client::Object> objects) override;
    void OnUpserted(client::Object object) override;
    void OnDeleted(client::Object last_state) override;

   private:
    Cache& cache_;
    Children<T> Entry::* const children_;
  };

  // Whether the job has to be looked at.
  bool Upsert(std::shared_ptr<const objects::CustomResource> job)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename T>
  static void Depart(Entry& entry, const std::shared_ptr<const T>& child);
  void DropIfEmpty(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const std::function<void(const std::string&)> changed_;
  JobSink jobs_{*this};
  ChildSink<objects::Pod> pods_{*this, &Entry::pods};
  ChildSink<objects::Service> services_{*this, &Entry::services};
  Mutex mutex_;
  std::unordered_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::set<const client::WatchSink*> synced_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::control
