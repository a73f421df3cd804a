// A cluster for tests of the verbs: the object store, logs in memory, a clock that stands still.
#pragma once

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"
#include "operator/local/store/store.h"
#include "runtime/base/mutex.h"

namespace tfjob::cli::testing {

// Logs by "pod/container"; "pod/container/previous" those before the last restart. Thread-safe.
class FakeLogs : public LogReader {
 public:
  Status Read(const LogRequest& request, const StopSource& stop,
              const std::function<bool(std::string_view)>& take) override;

  void Set(const std::string& key, const std::string& text);
  void Append(const std::string& key, const std::string& text);
  // A followed log of that key ends, now and later.
  void End(const std::string& key);
  // The next read of that key ends after so many bytes, as a connection that breaks.
  void BreakAfter(const std::string& key, size_t bytes);
  void Refuse(const std::string& key, const Status& status);
  std::vector<LogRequest> Requests();

 private:
  struct Log {
    std::string text;
    bool ended = false;
    size_t break_after = std::string::npos;
    Status refusal;
  };

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Log> logs_ ABSL_GUARDED_BY(mutex_);
  std::vector<LogRequest> requests_ ABSL_GUARDED_BY(mutex_);
};

class FakeCluster : public Cluster {
 public:
  // 2026-11-21T09:00:00Z.
  FakeCluster();

  client::Client& client() override { return *served_; }
  FakeLogs& logs() override { return logs_; }
  std::string server() const override { return "https://test:6443 (context dev)"; }
  std::string name_space() const override { return name_space_; }

  store::Store& store() { return store_; }
  FakeClock& clock() { return clock_; }
  // Calls go through `client` from now on.
  void Serve(client::Client& client) { served_ = &client; }
  void SetNamespace(const std::string& name_space) { name_space_ = name_space; }

  // Creates the object of a YAML text, and writes its status if it has one.
  void Create(client::Kind kind, const std::string& yaml);
  // The job "mnist" in namespace ns: `replicas` is YAML such as "{Worker: {replicas: 2}}", where
  // templates are filled in; `policy` and `status` are YAML too.
  void CreateJob(const std::string& name, const std::string& replicas,
                 const std::string& status = "{}", const std::string& policy = "{}");
  void WriteStatus(client::Kind kind, const std::string& name, const std::string& status);
  // A pod of the job: `type` is "worker".
  void CreatePod(const std::string& job, const std::string& type, int index,
                 const std::string& status, const std::string& node = "");
  // An event about an object that exists.
  void CreateEvent(client::Kind kind, const std::string& about, const std::string& type,
                   const std::string& reason, const std::string& message, int count = 1);
  Json Get(client::Kind kind, const std::string& name);

 private:
  FakeClock clock_;
  store::Store store_;
  client::Client* served_ = &store_;
  FakeLogs logs_;
  std::string name_space_ = "ns";
  int events_ = 0;
};

// The cluster with everything that a verb works with, and what it wrote.
struct World {
  FakeCluster cluster;
  std::istringstream in;
  std::ostringstream out, err;
  view::Console console{in, out, err, false};
  StopSource stop;
  Surroundings around{cluster, console, stop, cluster.clock()};

  // What was written since the last call.
  std::string Out();
  std::string Err();
};

// {Running: "True"} and so on, the newest last, since 09:00.
std::string Conditions(const std::vector<std::pair<std::string, std::string>>& conditions);

}  // namespace tfjob::cli::testing
