// Provides a fake cluster for tests of the verbs. It consists of the object store, logs in memory,
// and a fake clock.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "operator/cli/verbs/verb.h"
#include "operator/local/store/store.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::cli::testing {

// Keeps logs under the key "pod/container", and logs from before the last restart under
// "pod/container/previous". Thread-safe.
class FakeLogs : public LogReader {
 public:
  Status Read(const LogRequest& request, const StopSource& stop,
              const std::function<bool(std::string_view)>& take) override;

  void Set(const std::string& key, const std::string& text);
  void Append(const std::string& key, const std::string& text);
  // Marks the log as complete. Reads that follow the log, now or later, then end after the last
  // line.
  void End(const std::string& key);
  // Makes the next read of the log fail after `bytes` bytes, like a broken connection.
  void BreakAfter(const std::string& key, size_t bytes);
  void Refuse(const std::string& key, const Status& status);
  // Makes the next read of the log return `status`. Later reads are not affected.
  void RefuseOnce(const std::string& key, const Status& status);
  std::vector<LogRequest> Requests();
  // Returns how many reads have ended.
  size_t ReadsEnded();

 private:
  struct Log {
    std::string text;
    bool ended = false;
    size_t break_after = std::string::npos;
    Status refusal, refusal_of_one;
  };
  Status Pass(const LogRequest& request, const StopSource& stop,
              const std::function<bool(std::string_view)>& take);

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Log> logs_ ABSL_GUARDED_BY(mutex_);
  std::vector<LogRequest> requests_ ABSL_GUARDED_BY(mutex_);
  size_t reads_ended_ ABSL_GUARDED_BY(mutex_) = 0;
};

class FakeCluster : public Cluster {
 public:
  // The clock starts at 2026-11-21T09:00:00Z.
  FakeCluster();

  client::Client& client() override { return *served_; }
  FakeLogs& logs() override { return logs_; }
  std::string server() const override { return "https://test:6443 (context dev)"; }
  std::string name_space() const override { return name_space_; }

  store::Store& store() { return store_; }
  FakeClock& clock() { return clock_; }
  // Makes client() return `client` from now on.
  void Serve(client::Client& client) { served_ = &client; }
  void SetNamespace(const std::string& name_space) { name_space_ = name_space; }

  // Creates an object from YAML, and writes its status if the YAML has one.
  void Create(objects::Kind kind, const std::string& yaml);
  // Creates a job in the cluster's namespace. `replicas` is YAML such as "{Worker: {replicas: 2}}";
  // a pod template is added to each type. `policy` (the runPolicy) and `status` are YAML as well.
  void CreateJob(const std::string& name, const std::string& replicas,
                 const std::string& status = "{}", const std::string& policy = "{}");
  void WriteStatus(objects::Kind kind, const std::string& name, const std::string& status);
  // Creates a pod of the job. `type` is a replica type such as "worker", and `status` is YAML.
  void CreatePod(const std::string& job, const std::string& type, int index,
                 const std::string& status, const std::string& node = "");
  // Creates an event about an existing object.
  void CreateEvent(objects::Kind kind, const std::string& about, const std::string& type,
                   const std::string& reason, const std::string& message, int count = 1);
  Json Get(objects::Kind kind, const std::string& name);

 private:
  FakeClock clock_;
  store::Store store_;
  client::Client* served_ = &store_;
  FakeLogs logs_;
  std::string name_space_ = "ns";
  int events_ = 0;
};

// Contains a cluster, the other objects that a verb needs, and the verb's output.
struct World {
  FakeCluster cluster;
  std::istringstream in;
  std::ostringstream out, err;
  view::Console console{in, out, err, false};
  StopSource stop;
  VerbContext context{cluster, console, stop, cluster.clock()};

  // Parses `words`, the words after the verb's name on the command line, and runs the verb. Returns
  // its exit code, or kBadInput if the words are wrong.
  int Call(std::unique_ptr<ClusterVerb> verb, const std::vector<std::string>& words);
  // Return what was written to standard output and standard error since the last call.
  std::string Out();
  std::string Err();
};

// Returns status.conditions as YAML. `conditions` are pairs such as {"Running", "True"}, newest
// last. All of them date from 09:00.
std::string Conditions(const std::vector<std::pair<std::string, std::string>>& conditions);

}  // namespace tfjob::cli::testing
