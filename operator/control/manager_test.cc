#include "operator/control/manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "operator/control/test_manager.h"
#include "operator/objects/pod.h"

namespace tfjob::control {
namespace {

using fixtures::CountPods;
using fixtures::Job;
using objects::Kind;

// Returns the number of calls other than get, list and watch.
template <typename Client>
int Writes(SteppedManager<Client>& stepped) {
  using enum client::Verb;
  return stepped.Count([](const client::Call& call) {
    return call.verb != kGet && call.verb != kList && call.verb != kWatch;
  });
}

// The test's store contains a job with two workers, which the watch has reported.
class SteppedManagerTest : public ::testing::Test, public SteppedManager<> {
 protected:
  SteppedManagerTest() {
    Start();
    Create(Job("a", 2));
    store.Deliver();
  }
};

TEST_F(SteppedManagerTest, NeverRepeatsItsOwnWritesWhileTheWatchIsSilent) {
  Step();
  EXPECT_EQ(CountPods(store), 2u);
  const int writes = Writes(*this);
  for (int i = 0; i < 5; ++i) {
    clock.Advance(10s);  // the manager then reads what the watch should have reported
    Step();
  }
  EXPECT_EQ(Writes(*this), writes);
  store.Deliver();
  Step();
  EXPECT_EQ(Writes(*this), writes);
}

TEST_F(SteppedManagerTest, FindsOutThatItsCreateIsGoneAlthoughTheWatchIsSilent) {
  Step();
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(store.Delete({Kind::kPod, "ns", "a-worker-1"}, now).ok());
  EXPECT_EQ(CountPods(store), 1u);
  clock.Advance(10s);
  Step();
  EXPECT_EQ(CountPods(store), 2u);
}

// If the read of one object fails, the operator must still act on the other objects.
TEST_F(SteppedManagerTest, OneReadThatFailsDoesNotEndTheReconcile) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  Step();
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(store.Delete({Kind::kPod, "ns", "a-worker-1"}, now).ok());
  client.Inject({.matches =
                     [](const client::Call& call) {
                       return call.verb == client::Verb::kGet && call.key.name == "a-worker-0";
                     },
                 .times = 1000,
                 .error = Unavailable("the server is busy")});
  clock.Advance(10s);
  Step();
  EXPECT_EQ(CountPods(store), 2u);
  EXPECT_LE(*manager->NextTimer(), Duration(10s));  // it is read again later
}

// Each call lasts a minute. `longest`, the time that a worker has spent on a job, grows with the
// number of calls. `longest_call`, which the liveness probe checks, must not grow.
TEST_F(SteppedManagerTest, AThreadWithManyCallsIsNotStuck) {
  Step();
  Duration longest{0}, longest_call{0};
  client.Inject({.matches =
                     [](const client::Call& call) {
                       const bool writes =
                           call.verb == client::Verb::kCreate || call.verb == client::Verb::kDelete;
                       return writes && call.key.kind == Kind::kPod;
                     },
                 .times = 1000,
                 .error = OkStatus(),
                 .before_call =
                     [&] {
                       clock.Advance(1min);
                       longest = std::max(longest, manager->CountQueue().longest);
                       longest_call = std::max(longest_call, manager->CountQueue().longest_call);
                     }});
  Create(Job("large", 20));
  store.Deliver();
  Step();
  EXPECT_GE(longest, 20min);
  EXPECT_EQ(longest_call, Duration(1min));
  longest = longest_call = Duration(0);
  store.Deliver();
  Step();
  ASSERT_TRUE(
      store.Patch({Kind::kTFJob, "ns", "large"}, {{"spec", {{"runPolicy", {{"suspend", true}}}}}})
          .ok());
  store.Deliver();
  Step();
  EXPECT_GE(longest, 20min);
  EXPECT_EQ(longest_call, Duration(1min));
}

TEST_F(SteppedManagerTest, ManyObjectsInDoubtAreReadWithOneList) {
  Create(Job("large", 40));
  store.Deliver();
  Step();
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(store.Delete({Kind::kPod, "ns", "large-worker-7"}, now).ok());
  const auto reads = [&](client::Verb verb) {
    const std::vector<client::Call> calls = client.Calls();
    return std::count_if(calls.begin(), calls.end(), [verb](const client::Call& call) {
      return call.verb == verb && (call.key.kind == Kind::kPod || call.key.kind == Kind::kService);
    });
  };
  const auto gets = reads(client::Verb::kGet);
  const auto lists = reads(client::Verb::kList);
  clock.Advance(10s);
  Step();
  EXPECT_EQ(CountPods(store), 42u);
  EXPECT_EQ(reads(client::Verb::kList) - lists, 2);  // one of pods, one of services
  EXPECT_EQ(reads(client::Verb::kGet) - gets, 4);    // those of job a
}

// A new job must be reconciled first, even if thousands of jobs from the first list are waiting.
TEST(ManagerTest, ANewJobDoesNotWaitBehindTheFirstList) {
  SteppedManager<> stepped;
  for (int i = 0; i < 50; ++i) stepped.Create(Job(StrCat("old-", i), 1));
  stepped.Start();
  stepped.store.Deliver();
  stepped.Create(Job("new", 1));
  stepped.store.Deliver();
  EXPECT_TRUE(stepped.manager->Step());
  EXPECT_TRUE(stepped.store.Get({Kind::kPod, "ns", "new-worker-0"}).ok());
  EXPECT_EQ(CountPods(stepped.store), 1u);
}

// Keeps the sink of the job watch, so that the test can call it.
class JobSinkKeeper : public client::FaultyClient {
 public:
  using FaultyClient::FaultyClient;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override {
    if (kind == Kind::kTFJob) jobs = &sink;
    return FaultyClient::Subscribe(kind, name_space, selector, sink);
  }
  client::WatchSink* jobs = nullptr;
};

// If a list does not contain the operator's status write, the job must be read. Only a read shows
// whether the list is old or the server's store was restored to an earlier state.
TEST(ManagerTest, AJobIsReadWhenAListLacksItsStatusWrite) {
  SteppedManager<JobSinkKeeper> stepped;
  stepped.Start();
  stepped.Create(Job("a", 2));
  stepped.store.Deliver();
  const client::Object old = *stepped.store.Get({Kind::kTFJob, "ns", "a"});
  stepped.Step();
  const auto reads = [&] { return stepped.Count(client::Verb::kGet, Kind::kTFJob); };
  const int writes = Writes(stepped);
  EXPECT_EQ(reads(), 0);
  stepped.client.jobs->OnReplaced({old});
  stepped.Step();
  EXPECT_EQ(reads(), 1);
  EXPECT_EQ(Writes(stepped), writes);
}

TEST_F(SteppedManagerTest, WritesTheStatusOfALargeJobBeforeAllItsPodsExist) {
  Create(Job("large", 300));
  store.Deliver();
  Step();
  EXPECT_EQ(CountPods(store), 302u);
  size_t created = 0;
  size_t before_status = 0;
  for (const client::Call& call : client.Calls()) {
    if (call.key.name == "large" && call.verb == client::Verb::kUpdateStatus &&
        before_status == 0) {
      before_status = created;
    }
    created += call.verb == client::Verb::kCreate && call.key.kind != Kind::kEvent;
  }
  EXPECT_LT(before_status, 300u);
}

TEST_F(SteppedManagerTest, ALargeJobsServicesAndPodsAdvanceTogether) {
  Create(Job("large", 1000));
  store.Deliver();
  client.Inject({.matches =
                     [](const client::Call& call) {
                       return call.verb == client::Verb::kCreate && call.key.kind == Kind::kPod &&
                              call.key.name.starts_with("large");
                     },
                 .times = 1000,
                 .error = PermissionDenied("exceeded quota")});
  for (int i = 0; i < 20; ++i) {
    Step();
    clock.Advance(1min);
  }
  size_t services = 0;
  const std::vector<client::Object> stored = *store.List(Kind::kService, "ns", {});
  for (const client::Object& service : stored) {
    services += client::MetadataOf(service).name.starts_with("large") ? 1 : 0;
  }
  EXPECT_EQ(services, 128u);
}

// Returns the message of the job's Failed condition; "" if it has none.
std::string FailedMessage(store::Store& store, const std::string& name) {
  const Json job = *store.GetJson({Kind::kTFJob, "ns", name});
  for (const Json& condition : job["status"]["conditions"]) {
    if (condition["type"] == "Failed") return condition["message"];
  }
  return "";
}

TEST_F(SteppedManagerTest, AJobWithTooManyReplicasFailsBeforeAnythingIsCreated) {
  Create(Job("huge", 5001));
  const Json long_names = Job("long-" + std::string(30, 'x'), 2200);
  Create(long_names);
  store.Deliver();
  Step();
  EXPECT_THAT(
      FailedMessage(store, "huge"),
      testing::HasSubstr("spec.tfReplicaSpecs: the job has 5001 replicas, but this operator "
                         "runs jobs with at most 5000 (its flag --max-replicas-per-job)"));
  EXPECT_THAT(FailedMessage(store, long_names["metadata"]["name"]),
              testing::HasSubstr("replicas of this type fit, or set spec.enableDynamicWorker"));
  EXPECT_EQ(store.List(Kind::kService, "ns", {})->size(), 2u);  // those of job a
  EXPECT_EQ(CountPods(store), 2u);
}

TEST_F(SteppedManagerTest, AConflictWithItsOwnRepeatedWriteLosesNoEvent) {
  Step();
  Json pod = *store.GetJson({Kind::kPod, "ns", "a-worker-0"});
  pod["status"]["phase"] = "Succeeded";
  pod["status"]["containerStatuses"] =
      Json::array({{{"name", "tensorflow"}, {"state", {{"terminated", {{"exitCode", 0}}}}}}});
  ASSERT_TRUE(store.UpdateStatus(Kind::kPod, pod).ok());
  store.Deliver();
  const auto is = [](client::Verb verb) {
    return [verb](const client::Call& call) {
      return call.verb == verb && call.key.kind == Kind::kTFJob;
    };
  };
  client.Inject({.matches = is(client::Verb::kUpdateStatus),
                 .error = Aborted("the object has been modified"),
                 .executed = true});
  // Between the write and the read, the server adds a default from the CRD to the status.
  client.Inject({.matches = is(client::Verb::kGet), .before_call = [this] {
                   Json job = *store.GetJson({Kind::kTFJob, "ns", "a"});
                   job["status"]["restarts"] = 0;
                   EXPECT_TRUE(store.UpdateStatus(Kind::kTFJob, job).ok());
                 }});
  Step();
  int succeeded = 0;
  for (const client::Call& call : client.Calls()) {
    if (call.verb != client::Verb::kCreate || call.key.kind != Kind::kEvent) continue;
    const Json json = *store.GetJson(call.key);
    succeeded += JsonField(json)["reason"].StringOr("").value_or("") == "TFJobSucceeded";
  }
  EXPECT_EQ(succeeded, 1);
}

TEST_F(SteppedManagerTest, ForgetsAJobThatIsGone) {
  Step();
  ASSERT_TRUE(store.Delete({Kind::kTFJob, "ns", "a"}, {}).ok());
  store.Deliver();
  const int writes = Writes(*this);
  Step();
  EXPECT_EQ(Writes(*this), writes);
  EXPECT_TRUE(manager->NextTimer().value_or(Duration(1s)) > Duration(0));
}

// Acts as a kubelet: sets every pending pod to Running as soon as a watch reports the pod.
class RunningKubelet : public client::WatchSink {
 public:
  explicit RunningKubelet(client::Client& client) : client_(client) {}
  void OnReplaced(std::vector<client::Object>) override {}
  void OnUpserted(client::Object object) override {
    objects::Pod pod = *client::As<objects::Pod>(object);
    if (pod.phase != objects::PodPhase::kPending) return;
    pod.phase = objects::PodPhase::kRunning;
    Json status = objects::StatusToJson(pod);
    status["metadata"] = {{"name", pod.metadata.name}, {"namespace", pod.metadata.name_space}};
    EXPECT_TRUE(client_.UpdateStatus(Kind::kPod, status).ok());
  }
  void OnDeleted(client::Object) override {}

 private:
  client::Client& client_;
};

int RunningJobs(store::Store& store) {
  int running = 0;
  const std::vector<client::Object> jobs = *store.List(Kind::kTFJob, "", {});
  for (const client::Object& object : jobs) {
    const auto& job = client::As<objects::CustomResource>(object);
    const auto conditions = JsonField(*job->object)["status"]["conditions"].Elements();
    if (!conditions.ok() || conditions->empty()) continue;
    running += conditions->back()["type"].StringOr("").value_or("") == "Running";
  }
  return running;
}

TEST(Manager, RunsManyJobsOnThreadsAndStopsPromptly) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  constexpr int kJobs = 40;
  store::Store store;
  RunningKubelet kubelet(store);
  const auto watch = store.Subscribe(Kind::kPod, "", {}, kubelet);
  ManagerOptions options;
  options.workers = 3;
  options.parallel_writes = 3;
  options.settings.address = render::ClusterDns("");
  auto manager = Manager::Start(store, options);
  ASSERT_TRUE(manager.ok()) << manager.status();
  for (int i = 0; i < kJobs; ++i) {
    ASSERT_TRUE(store.Create(Kind::kTFJob, Job(StrCat("job-", i), 5)).ok());
  }
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (RunningJobs(store) < kJobs && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(2ms);
  }
  EXPECT_EQ(RunningJobs(store), kJobs);
  EXPECT_EQ(CountPods(store), static_cast<size_t>(kJobs) * 5);
  const auto before = std::chrono::steady_clock::now();
  (*manager)->Stop();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 2s);
}

TEST(Manager, LetsAllWorkersServeTheOnlyNamespace) {
  ConfigureLogging(LogLevel::kError, LogFormat::kText);
  store::Store store;
  client::FaultyClient client(store);
  std::atomic<int> arrived = 0;
  std::atomic<bool> was_alone = false;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  const auto await_other = [&] {
    ++arrived;
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (arrived < 2) was_alone = true;
  };
  client.Inject({.matches =
                     [](const client::Call& call) {
                       return call.verb == client::Verb::kCreate && call.key.kind == Kind::kPod;
                     },
                 .times = 2,
                 .error = OkStatus(),
                 .before_call = await_other});
  ManagerOptions options{.name_spaces = {"ns"}, .workers = 2, .parallel_writes = 0};
  options.settings.address = render::ClusterDns("");
  for (const char* name : {"a", "b"}) ASSERT_TRUE(store.Create(Kind::kTFJob, Job(name, 1)).ok());
  const auto manager = *Manager::Start(client, options);
  while (arrived < 2 && !was_alone) std::this_thread::yield();
  manager->Stop();
  EXPECT_FALSE(was_alone);
}

// A delayed write of counts must not delay the job's own timers.
TEST(CountPatience, DoesNotDelayTheDeadline) {
  SteppedManager<> stepped;
  RunningKubelet kubelet(stepped.store);
  stepped.options.settings.count_patience = 200ms;
  stepped.Start();
  const client::Key key{Kind::kTFJob, "ns", "a"};
  stepped.Create(Job("a", 2));
  stepped.Rest();
  kubelet.OnUpserted(*stepped.store.Get({Kind::kPod, "ns", "a-worker-0"}));
  stepped.Rest();
  stepped.clock.Advance(14900ms);
  stepped.Rest();  // runs the timers that are already due
  const Json deadline = {{"spec", {{"runPolicy", {{"activeDeadlineSeconds", 15}}}}}};
  ASSERT_TRUE(stepped.store.Patch(key, deadline).ok());
  kubelet.OnUpserted(*stepped.store.Get({Kind::kPod, "ns", "a-worker-1"}));
  stepped.Rest();
  EXPECT_EQ((*stepped.store.GetJson(key))["status"]["conditions"].back()["type"], "Running");
  stepped.clock.Advance(100ms);
  stepped.Rest();
  EXPECT_EQ((*stepped.store.GetJson(key))["status"]["conditions"].back()["type"], "Failed");
}

TEST(CountPatience, PodsThatStartOneAfterTheOtherMakeOneWrite) {
  SteppedManager<> stepped;
  RunningKubelet kubelet(stepped.store);
  stepped.options.settings.count_patience = 200ms;
  stepped.Start();
  stepped.Create(Job("a", 3));
  stepped.Rest();
  const auto start = [&](const std::string& name) {
    kubelet.OnUpserted(*stepped.store.Get({Kind::kPod, "ns", name}));
    stepped.Rest();
  };
  const auto status_writes = [&] {
    return stepped.Count(
        [](const client::Call& call) { return call.verb == client::Verb::kUpdateStatus; });
  };
  EXPECT_EQ(status_writes(), 1);
  start("a-worker-0");  // a changed condition is written immediately
  EXPECT_EQ(status_writes(), 2);
  start("a-worker-1");
  stepped.clock.Advance(150ms);
  start("a-worker-2");
  EXPECT_EQ(status_writes(), 2);
  stepped.clock.Advance(50ms);
  stepped.Rest();
  EXPECT_EQ(status_writes(), 3);
  const Json job = *stepped.store.GetJson({Kind::kTFJob, "ns", "a"});
  EXPECT_EQ(job["status"]["replicaStatuses"]["Worker"]["active"], 3);
  stepped.clock.Advance(10s);
  stepped.Rest();
  EXPECT_EQ(status_writes(), 3);
}

}  // namespace
}  // namespace tfjob::control
