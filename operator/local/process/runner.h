// Acts as the kubelet of this machine: watches pods through a client, and runs them as processes
// until they end or are deleted.
//
//   ASSIGN_OR_RETURN(auto runner, Runner::Create(client, options));   // pods start from now on
//   runner.reset();                                                   // kills running pods
#pragma once

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "operator/client/client.h"
#include "operator/local/process/options.h"
#include "operator/local/process/supervisor.h"
#include "runtime/base/mutex.h"

namespace tfjob::process {

// Runs the pods. A single thread does all the work. It sleeps until a pod changes, a process exits
// or a timer expires. Processes of deleted pods get SIGTERM, and SIGKILL after the grace period. If
// the program exits, for whatever reason, the runner's processes are killed.
class Runner : private client::WatchSink {
 public:
  // `client` must outlive the runner. Returns an error if the state folder cannot be created or the
  // watch cannot be started.
  static StatusOr<std::unique_ptr<Runner>> Create(client::Client& client, RunnerOptions options,
                                                  Clock& clock = RealClock());
  ~Runner() override;

 private:
  struct Change {
    enum class Kind { kReplaced, kUpserted, kDeleted };
    Kind kind;
    std::vector<client::Object> objects;
  };

  Runner(client::Client& client, RunnerOptions options, Clock& clock)
      : client_(client), options_(std::move(options)), clock_(clock) {}

  Status Start();
  void OnReplaced(std::vector<client::Object> objects) override;
  void OnUpserted(client::Object object) override;
  void OnDeleted(client::Object last_state) override;
  void Push(Change change);

  // The functions below are called only on the runner's thread.
  void Loop();
  int WaitMilliseconds() const;
  void TakeChanges();
  void Replace(const std::vector<client::Object>& objects);
  void Upsert(const objects::Pod& pod);
  void Remove(const std::string& uid);
  void Adopt(const objects::Pod& pod);
  void Step(const std::string& uid);
  void StepDue();
  void WatchProcesses(const std::string& uid, Supervisor& pod);
  void OnProcessEnded(uint64_t token);
  std::set<pid_t> KnownProcesses() const;

  client::Client& client_;
  const RunnerOptions options_;
  Clock& clock_;
  std::unique_ptr<Guardian> guardian_;
  OomWatch oom_;
  FileDescriptor epoll_, wake_;

  Mutex mutex_;
  std::vector<Change> changes_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  struct Watched {
    std::string uid;
    size_t container = 0;
    int pidfd = -1;
  };
  std::map<std::string, std::unique_ptr<Supervisor>> pods_;  // by UID
  std::map<uint64_t, Watched> watched_;                      // by their token in epoll
  uint64_t next_token_ = 1;

  std::unique_ptr<client::Subscription> subscription_;
  std::thread thread_;
};

}  // namespace tfjob::process
