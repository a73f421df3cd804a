// Tests tfjob-operator's connections with a server that only counts and echoes requests.
#include "operator/service/kube_cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "operator/kube/doubles/test_server.h"
#include "operator/objects/packed_resource.h"
#include "operator/service/run.h"
#include "runtime/base/file.h"
#include "runtime/base/mutex.h"

namespace tfjob::service {
namespace {

using kube::TestConnection;
using kube::TestRequest;
using objects::Kind;
using SteadyClock = std::chrono::steady_clock;

class NoObserver : public kube::RestObserver {
 public:
  void OnCall(const kube::RestCall&) override {}
};

Json Named(const std::string& name) {
  return {{"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "u"}}}};
}

class OperatorKubeTest : public ::testing::Test {
 protected:
  ~OperatorKubeTest() override { unlink(path_.c_str()); }

  // Starts a server and returns options that connect to it.
  OperatorOptions Serve(OperatorOptions options, kube::TestServer::Handler handler) {
    kube::TestServer::Options plain;
    plain.tls = false;
    server_ = std::make_unique<kube::TestServer>(plain, std::move(handler));
    const Json kubeconfig = {
        {"apiVersion", "v1"},
        {"kind", "Config"},
        {"current-context", "a"},
        {"clusters", {{{"name", "a"}, {"cluster", {{"server", server_->url()}}}}}},
        {"contexts", {{{"name", "a"}, {"context", {{"cluster", "a"}, {"namespace", "ns"}}}}}}};
    EXPECT_TRUE(WriteFileAtomically(path_, PrintJson(kubeconfig)).ok());
    options.kubeconfig = path_;
    return options;
  }
  void Connect(OperatorOptions options, kube::TestServer::Handler handler) {
    options = Serve(std::move(options), std::move(handler));
    auto cluster = ConnectKube(options, observer_, nullptr);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
  }

  const std::string path_ = StrCat(::testing::TempDir(), "/kubeconfig-", getpid());
  NoObserver observer_;
  std::unique_ptr<kube::TestServer> server_;
  std::unique_ptr<OperatorCluster> cluster_;
};

void Echo(const TestRequest& request, TestConnection& connection) {
  connection.Reply(201, request.body);
}

TEST_F(OperatorKubeTest, NoWriteWaitsForEvents) {
  OperatorOptions options;
  options.kube_api_qps = 6;
  options.kube_api_burst = 6;
  Connect(options, Echo);
  // The event client may send a burst of one call, and then one call per second, so the second
  // event has to wait.
  std::thread events([&] {
    for (const char* name : {"e1", "e2"}) {
      EXPECT_TRUE(cluster_->event_client().Create(Kind::kEvent, Named(name)).ok());
    }
  });
  const auto begin = SteadyClock::now();
  for (const char* name : {"p1", "p2", "p3", "p4", "p5", "p6"}) {
    const auto created = cluster_->client().Create(Kind::kPod, Named(name));
    EXPECT_TRUE(created.ok()) << created.status();
  }
  const auto took = SteadyClock::now() - begin;
  events.join();
  EXPECT_LT(took, SteadyClock::now() - begin);
  EXPECT_GT(SteadyClock::now() - begin, 900ms);
}

TEST_F(OperatorKubeTest, EventsHaveTwoConnections) {
  Mutex mutex;
  CondVar changed;
  int at_once = 0;
  int most = 0;
  Connect({}, [&](const TestRequest& request, TestConnection& connection) {
    {
      MutexLock lock(mutex);
      most = std::max(most, ++at_once);
      changed.NotifyAll();
      // No call is answered until the second connection exists.
      while (most < 2 && changed.WaitFor(mutex, 10s)) continue;
      --at_once;
    }
    Echo(request, connection);
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_TRUE(cluster_->event_client().Create(Kind::kEvent, Named(StrCat("e", i))).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 2);
  EXPECT_EQ(server_->connections(), 2);
}

Json FinishedJob(const std::string& name) {
  Json job = Named(name);
  job["apiVersion"] = "kubeflow.org/v1";
  job["kind"] = "TFJob";
  job["metadata"]["resourceVersion"] = "7";
  job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["nodeName"] = "a-long-template";
  job["status"]["conditions"] = {{{"type", "Succeeded"}, {"status", "True"}}};
  return job;
}

// Collects the packed texts of the jobs that arrive, and "not packed" for a job that arrives as a
// tree.
class PackedJobs : public client::WatchSink {
 public:
  void OnReplaced(std::vector<client::Object> objects) override {
    for (const client::Object& object : objects) OnUpserted(object);
  }
  void OnUpserted(client::Object object) override {
    const auto packed = client::As<objects::PackedResource>(object);
    MutexLock lock(mutex_);
    texts_.push_back(packed == nullptr ? "not packed"
                                       : StrCat(packed->metadata.name, " ", packed->text));
    changed_.NotifyAll();
  }
  void OnDeleted(client::Object) override {}
  // Waits until `count` jobs have arrived, but at most 20 s.
  std::vector<std::string> Await(size_t count) {
    const auto deadline = SteadyClock::now() + 20s;
    MutexLock lock(mutex_);
    while (texts_.size() < count && changed_.WaitUntil(mutex_, deadline)) continue;
    return texts_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);
};

// If jobs were packed later, the trees of all jobs in a long list would be in memory at once.
TEST_F(OperatorKubeTest, JobsArePackedAsTheyArrive) {
  for (const bool streams : {true, false}) {
    Connect({}, [streams](const TestRequest& request, TestConnection& connection) {
      const bool initial = request.target.find("sendInitialEvents") != std::string::npos;
      if (request.target.find("watch=1") == std::string::npos) {
        const Json list = {{"metadata", {{"resourceVersion", "8"}}},
                           {"items", {FinishedJob("listed")}}};
        return connection.Reply(200, PrintJson(list));
      }
      if (initial && !streams) return connection.Reply(422, R"({"kind":"Status"})");
      const auto send = [&](const char* type, const Json& object) {
        connection.Chunk(PrintJson({{"type", type}, {"object", object}}) + "\n");
      };
      connection.StartChunks();
      if (initial) {
        send("ADDED", FinishedJob("listed"));
        send("BOOKMARK", {{"metadata",
                           {{"resourceVersion", "8"},
                            {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}});
      }
      send("ADDED", FinishedJob("watched"));
      connection.AwaitEnd();
    });
    PackedJobs jobs;
    auto subscription = cluster_->client().Subscribe(Kind::kTFJob, "ns", {}, jobs);
    ASSERT_TRUE(subscription.ok()) << subscription.status();
    const std::string text = R"( {"spec":{"tfReplicaSpecs":{"Worker":{}}},)"
                             R"("status":{"conditions":[{"status":"True","type":"Succeeded"}]}})";
    EXPECT_EQ(jobs.Await(2), (std::vector<std::string>{"listed" + text, "watched" + text}))
        << streams;
    subscription->reset();
    cluster_.reset();
  }
}

// Answers calls for the lease until `silent` is set. Never answers any other call.
class OnlyTheLease {
 public:
  void operator()(const TestRequest& request, TestConnection& connection) {
    const bool lease = request.target.find("/leases") != std::string::npos;
    if (!lease || silent) {
      ++(lease ? leases : others);
      return connection.AwaitEnd();
    }
    if (request.method == "GET") {
      return connection.Reply(404, R"({"kind":"Status","details":{"name":"lease"}})");
    }
    connection.Reply(request.method == "POST" ? 201 : 200, request.body);
  }

  std::atomic<bool> silent = false;
  std::atomic<int> leases = 0;  // number of calls that wait for an answer
  std::atomic<int> others = 0;
};

TEST_F(OperatorKubeTest, AnOperatorWhoseServerIsSilentEndsWithinTwoSeconds) {
  OnlyTheLease lease;
  OperatorOptions options;
  options.metrics_address.reset();
  options.health_address.reset();
  options.leader_elect = true;
  options.retry_period = 100ms;
  options = Serve(options, [&](const TestRequest& request, TestConnection& connection) {
    lease(request, connection);
  });
  StopSource stop;
  std::atomic<bool> leaving = false;
  OperatorHooks hooks;
  hooks.leaving = [&](int code) { leaving = code == view::kSucceeded; };
  int code = -1;
  SteadyClock::time_point end;
  std::thread one([&] {
    code = RunOperator(options, ConnectKube, stop, hooks);
    end = SteadyClock::now();
  });
  const auto await = [](const std::atomic<int>& calls) {
    const auto deadline = SteadyClock::now() + 20s;
    while (calls == 0 && SteadyClock::now() < deadline) std::this_thread::sleep_for(1ms);
    EXPECT_GT(calls, 0);
  };
  await(lease.others);  // the operator leads, and its lists hang
  lease.silent = true;
  await(lease.leases);
  const auto begin = SteadyClock::now();
  stop.Request(15);
  one.join();
  EXPECT_EQ(code, view::kSucceeded);
  EXPECT_TRUE(leaving);
  EXPECT_LT(end - begin, 2s);
}

}  // namespace
}  // namespace tfjob::service
