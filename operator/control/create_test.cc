#include "operator/control/create.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/client/faults.h"
#include "operator/control/act_context.h"
#include "operator/control/cache/cache.h"
#include "operator/control/measurements/observer.h"
#include "operator/control/memory.h"
#include "operator/control/native_api.h"
#include "operator/control/observation.h"
#include "operator/local/store/store.h"
#include "operator/objects/service.h"
#include "operator/policy/testing.h"
#include "operator/render/address.h"
#include "operator/render/render.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {
namespace {

using client::Verb;
using objects::Kind;
using policy::testing::TypeSpec;
using enum api::ReplicaType;
using Texts = std::vector<std::string>;

constexpr char kJobKey[] = "ns/mnist";

class CreatesCounter : public Observer {
 public:
  void OnCreated(Kind, const std::string&) override { ++created; }
  void OnCreateFailed(Kind, const std::string&) override { ++failed; }
  int created = 0;
  int failed = 0;
};

// Sets up one job in a store. The test chooses what the plan creates and which calls fail.
struct OneJob {
  // Plans all pods of a job and, if `services` is true, its services before them.
  void Plan(const std::vector<TypeSpec>& types, bool services = false) {
    api::TFJob& job = observation.job;
    job = policy::testing::MakeJob(types);
    const client::Object stored =
        *server.Create(Kind::kTFJob, {{"apiVersion", "kubeflow.org/v1"},
                                      {"kind", "TFJob"},
                                      {"metadata", {{"name", "mnist"}, {"namespace", "ns"}}}});
    job.metadata.uid = client::MetadataOf(stored).uid;
    observation.key = kJobKey;
    scope.jobs.OnReplaced({stored});
    policy::Verdict& verdict = decision.verdict;
    for (const TypeSpec& type : types) {
      for (int32_t i = 0; i < type.replicas; ++i) {
        const std::string name = api::ReplicaName("mnist", type.type, i);
        if (services) verdict.create_services.push_back({{type.type, i}, name});
        verdict.create_pods.push_back({{type.type, i}, name, 0});
      }
    }
    Render();
  }
  void Render() {
    decision.desired = *render::Render(observation.job, decision.verdict, render::ClusterDns(""));
    decision.plan.creates = decision.desired.objects();
  }
  // Plans the pods of `workers` workers and, before them, a pod group for scheduler-plugins.
  void PlanGang(int32_t workers) {
    Plan({{kWorker, workers}});
    decision.verdict.gang.scheduler = policy::GangScheduler::kCoscheduling;
    decision.verdict.create_pod_group = policy::PodGroupSpec{.min_member = workers};
    Render();
  }

  // Makes the calls on objects whose names begin with `prefix` fail.
  void Fail(Verb verb, Kind kind, const std::string& prefix, const Status& error,
            bool executed = false) {
    calls.Inject({.matches =
                      [=](const client::Call& call) {
                        return call.verb == verb && call.key.kind == kind &&
                               call.key.name.starts_with(prefix);
                      },
                  .times = 1000,
                  .error = error,
                  .executed = executed});
  }
  // Stores a pod or a pod group that the Creator did not create.
  client::Object Put(Kind kind, const std::string& name, const Json& owner = nullptr) {
    Json object = {{"apiVersion", objects::NewestApiVersion(kind)},
                   {"kind", objects::Name(kind)},
                   {"metadata", {{"name", name}, {"namespace", "ns"}}},
                   {"spec", {{"containers", Json::array({{{"name", "c"}}})}}}};
    if (owner != nullptr) object["metadata"]["ownerReferences"] = Json::array({owner});
    return *server.Create(kind, object);
  }
  Json OwnerHere() const {
    return {{"apiVersion", "kubeflow.org/v1"},
            {"kind", "TFJob"},
            {"name", "mnist"},
            {"uid", observation.job.metadata.uid},
            {"controller", true}};
  }

  Outcome Create() { return creator.CreateAll({observation, decision, memory}); }

  int Count(Verb verb, Kind kind) {
    int count = 0;
    for (const client::Call& call : calls.Calls()) {
      count += call.verb == verb && call.key.kind == kind;
    }
    return count;
  }
  size_t CachedPods() {
    return cache.SnapshotOf(kJobKey, observation.job.metadata.uid).pods.size();
  }
  Texts Events() const {
    Texts events;
    for (const plan::NamedEvent& event : memory.events) {
      events.push_back(StrCat(event.event.reason, ": ", event.event.message));
    }
    return events;
  }

  FakeClock clock{*ParseTime("2026-11-21T09:30:00Z")};
  store::Store server{{.clock = &clock, .deliver_by_hand = true}};
  client::FaultyClient calls{server};
  Cache cache{clock, [](const std::string&, Urgency) {}};
  Cache::Scope scope = cache.AddScope("");
  ThreadPool pool{"create", 0};
  CreatesCounter counter;
  NativeApi native_api{nullptr, clock};
  Creator creator{{calls, cache, clock, pool, counter, native_api, [](auto) { return true; }}};
  Observation observation;
  Decision decision;
  Memory memory;
};

TEST(Creator, CreatesInThePlansOrderAndReportsOneEventPerKind) {
  OneJob one;
  one.Plan({{kPS, 1}, {kWorker, 2}}, true);
  one.memory.history.refusal = "of an earlier reconcile";
  one.memory.history.reported = {"create-failed/x", "another"};
  const Outcome outcome = one.Create();
  EXPECT_EQ(outcome.next, Next::kDone) << outcome.error;
  Texts made;
  for (const client::Call& call : one.calls.Calls()) {
    made.push_back(StrCat(Name(call.verb), " ", client::ToString(call.key)));
  }
  EXPECT_EQ(made, (Texts{"create Service ns/mnist-ps-0", "create Service ns/mnist-worker-0",
                         "create Service ns/mnist-worker-1", "create Pod ns/mnist-ps-0",
                         "create Pod ns/mnist-worker-0", "create Pod ns/mnist-worker-1"}));
  EXPECT_EQ(
      one.Events(),
      (Texts{"SuccessfulCreateService: Created services: mnist-ps-0, mnist-worker-0, "
             "mnist-worker-1",
             "SuccessfulCreatePod: Created pods: mnist-ps-0, mnist-worker-0, mnist-worker-1"}));
  EXPECT_EQ(one.CachedPods(), 3u);
  EXPECT_EQ(one.counter.created, 6);
  EXPECT_EQ(one.memory.history.refusal, "");
  EXPECT_EQ(one.memory.history.reported, std::set<std::string>{"another"});
  EXPECT_FALSE(one.memory.reconcile_again);
}

TEST(Creator, LeavesWhatIsTooMuchToTheNextReconcile) {
  OneJob one;
  one.Plan({{kWorker, 300}});
  EXPECT_EQ(one.Create().next, Next::kDone);
  EXPECT_EQ(one.Count(Verb::kCreate, Kind::kPod), 256);
  EXPECT_TRUE(one.memory.reconcile_again);
}

// An error must stop only the creates that it would affect. The first batch has 8 objects and
// begins with the objects of parameter servers.
TEST(Creator, AnErrorStopsTheCreatesThatWouldMeetItToo) {
  const Status bad = InvalidArgument("bad");
  const Status quota = PermissionDenied("quota");
  const struct {
    const char* what;
    int32_t ps, workers;
    Kind kind;
    const char* fails;  // creates of objects whose names begin with this prefix fail
    Status error;
    const char* first;
    int tried;  // number of attempts to create a pod
    size_t created;
    int failed;  // number of pods and services that could not be created
  } cases[] = {
      {"a refused type", 20, 9, Kind::kPod, "mnist-ps", bad, "mnist-ps-0", 17, 9, 8},
      {"the second type", 1, 20, Kind::kPod, "mnist-worker", bad, "mnist-worker-0", 8, 1, 7},
      {"one object", 1, 20, Kind::kPod, "mnist-worker-7", bad, "mnist-worker-7", 21, 20, 1},
      {"all", 1, 20, Kind::kPod, "mnist-worker-3", quota, "mnist-worker-3", 8, 7, 1},
      {"all kinds", 1, 2, Kind::kService, "mnist", quota, "mnist-ps-0", 0, 0, 3},
      {"no other kind", 1, 2, Kind::kService, "mnist", bad, "mnist-ps-0", 3, 3, 3},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    OneJob one;
    one.Plan({{kPS, each.ps}, {kWorker, each.workers}}, true);
    one.Fail(Verb::kCreate, each.kind, each.fails, each.error);
    const Outcome outcome = one.Create();
    EXPECT_EQ(outcome.next, Next::kFailed);
    EXPECT_EQ(Message(outcome.error), StrCat("creating ", objects::Name(each.kind), " ", each.first,
                                             ": ", Message(each.error)));
    EXPECT_EQ(one.Count(Verb::kCreate, Kind::kPod), each.tried);
    EXPECT_EQ(one.CachedPods(), each.created);
    EXPECT_EQ(one.counter.failed, each.failed);
    EXPECT_EQ(one.memory.history.refusal, Message(each.error));
  }
}

TEST(Creator, ReportsARefusalOnceHoweverManyObjectsMeetIt) {
  OneJob one;
  one.Plan({{kWorker, 5}});
  one.Fail(Verb::kCreate, Kind::kPod, "mnist", InvalidArgument("bad image"));
  one.Create();
  one.Create();
  EXPECT_EQ(one.Events(), Texts{"FailedCreatePod: Error creating: bad image"});
}

TEST(Creator, ReportsFewOfTheRefusalsOfAServerThatNeverRepeatsItself) {
  OneJob one;
  one.Plan({{kWorker, 1}});
  for (char first = 'a'; first <= 'z'; ++first) {
    for (char second = 'a'; second <= 'z'; ++second) {
      one.calls.Inject({.matches = [](const client::Call&) { return true; },
                        .error = InvalidArgument("ticket ", std::string{first, second})});
      one.Create();
    }
  }
  EXPECT_EQ(one.Events().size(), 20u);
}

// If the response to a create is lost or the name is taken, the Creator must read the object to
// find out whether it was created.
TEST(Creator, ReadsWhatALostAnswerLeavesOpen) {
  constexpr StatusCode kOk = StatusCode::kOk;
  constexpr StatusCode kAway = StatusCode::kUnavailable;
  const struct {
    const char* what;
    Status error;
    bool executed;
    Status read_error;
    StatusCode code;
    int reads = 1;
  } cases[] = {
      {"the answer is lost", Unavailable("x"), true, {}, kOk},
      {"the answer is late", DeadlineExceeded("x"), true, {}, kOk},
      {"the server fails afterwards", Internal("x"), true, {}, kOk},
      {"not executed", Unavailable("x"), false, {}, kAway},
      {"not executed in time", DeadlineExceeded("x"), false, {}, kAway},
      {"a webhook fails", Internal("x"), false, {}, StatusCode::kInternal},
      {"the holder of the name has gone", AlreadyExists("x"), false, {}, kAway},
      {"nor can it be read", Internal("y"), true, Internal("x"), kAway},
      {"a clear answer", ResourceExhausted("x"), false, {}, StatusCode::kResourceExhausted, 0},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    OneJob one;
    one.Plan({{kWorker, 1}});
    one.Fail(Verb::kCreate, Kind::kPod, "mnist", each.error, each.executed);
    one.Fail(Verb::kGet, Kind::kPod, "mnist", each.read_error);
    const Outcome outcome = one.Create();
    const bool found = each.code == kOk;
    EXPECT_EQ(outcome.error.code(), each.code);
    EXPECT_EQ(Message(outcome.error), found ? "" : "creating Pod mnist-worker-0: x");
    EXPECT_EQ(one.memory.history.refusal, each.code == StatusCode::kInternal ? "x" : "");
    EXPECT_EQ(one.Count(Verb::kGet, Kind::kPod), each.reads);
    EXPECT_EQ(one.CachedPods(), found ? 1u : 0u);
    EXPECT_EQ(one.counter.created, found ? 1 : 0);
    if (!found) continue;
    EXPECT_EQ(one.Events(), Texts{"SuccessfulCreatePod: Created pod: mnist-worker-0"});
  }
}

TEST(Creator, ATakenNameIsRememberedUnlessItsHolderIsOurs) {
  for (const std::string holder : {"", "nobody", "ReplicaSet web"}) {  // "": the job itself
    SCOPED_TRACE(holder);
    const bool ours = holder.empty();
    OneJob one;
    one.Plan({{kWorker, 2}});
    Json owner = one.OwnerHere();
    if (holder == "nobody") owner["controller"] = false;
    if (holder == "ReplicaSet web") {
      owner["kind"] = "ReplicaSet";
      owner["name"] = "web";
      owner["uid"] = client::MetadataOf(one.Put(Kind::kPod, "web")).uid;  // an existing owner
    }
    const client::Object held = one.Put(Kind::kPod, "mnist-worker-1", owner);
    auto& blocked = one.memory.history.blocked_pods;
    blocked["mnist-worker-0"] = {"nobody", "its holder has gone", {}};
    const Outcome outcome = one.Create();
    EXPECT_EQ(outcome.next, Next::kDone) << outcome.error;
    EXPECT_EQ(one.memory.reconcile_again, !ours);
    EXPECT_EQ(one.CachedPods(), ours ? 2u : 1u);
    EXPECT_EQ(one.Events().size(), ours ? 2u : 1u);  // the existing pod has its own event
    ASSERT_EQ(blocked.size(), ours ? 0u : 1u);
    if (ours) continue;
    EXPECT_EQ(blocked["mnist-worker-1"].holder, holder);
    EXPECT_EQ(blocked["mnist-worker-1"].holder_uid, client::MetadataOf(held).uid);
    EXPECT_EQ(blocked["mnist-worker-1"].tried_at, one.clock.Monotonic());
  }
}

TEST(Creator, CreatesNoPodsWithoutTheirGroup) {
  constexpr char kTaken[] = "PodGroup mnist belongs to nobody, not to this job";
  const struct {
    Status error;  // OK: the name is taken
    const char* message;
    const char* refusal;
  } cases[] = {
      {InvalidArgument("bad"), "bad", "bad"},
      {NotFound("no such kind"), "no such kind", "no such kind"},
      {Unavailable("away"), "away", ""},
      {OkStatus(), kTaken, kTaken},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.error);
    OneJob one;
    one.PlanGang(2);
    if (each.error.ok()) one.Put(Kind::kCoschedulingPodGroup, "mnist");
    one.Fail(Verb::kCreate, Kind::kCoschedulingPodGroup, "mnist", each.error);
    const Outcome outcome = one.Create();
    EXPECT_EQ(outcome.next, Next::kFailed);
    EXPECT_EQ(Message(outcome.error), StrCat("creating PodGroup mnist: ", each.message));
    EXPECT_EQ(one.memory.history.refusal, each.refusal);
    EXPECT_EQ(one.Count(Verb::kCreate, Kind::kPod), 0);
  }
}

TEST(Creator, WaitsUntilAGroupOfTheJobIsDeleted) {
  OneJob one;
  one.PlanGang(1);
  const client::Key key{Kind::kCoschedulingPodGroup, "ns", "mnist"};
  one.Put(key.kind, key.name, one.OwnerHere());
  Json group = *one.server.GetJson(key);
  group["metadata"]["finalizers"] = Json::array({"test/stay"});
  ASSERT_TRUE(one.server.Update(key.kind, group).ok());
  ASSERT_TRUE(one.server.Delete(key, {}).ok());
  const Outcome outcome = one.Create();
  EXPECT_EQ(Message(outcome.error),
            "creating PodGroup mnist: PodGroup ns/mnist is still being deleted");
  EXPECT_EQ(one.Count(Verb::kCreate, Kind::kPod), 0);
}

TEST(Creator, EndsWithTheJobAndWithTheOperator) {
  using Action = void (*)(OneJob&);
  const Action none = [](OneJob&) {};
  const Action delete_job = [](OneJob& one) { one.scope.jobs.OnReplaced({}); };
  const Action stop = [](OneJob& one) { one.creator.Stop(); };
  const struct {
    Action before, meanwhile;
    Status error;
    Next next;
    int tried, failed;
  } cases[] = {
      {delete_job, none, {}, Next::kJobIsGone, 0, 0},
      {stop, none, {}, Next::kFailed, 0, 0},
      {none, delete_job, {}, Next::kJobIsGone, 8, 0},
      {none, stop, {}, Next::kFailed, 8, 0},
      {none, none, FailedPrecondition("the namespace is going"), Next::kJobIsGone, 8, 0},
      {none, none, NotFound("there is no such namespace"), Next::kJobIsGone, 8, 8},
  };
  for (const auto& each : cases) {
    OneJob one;
    one.Plan({{kWorker, 20}});
    one.Fail(Verb::kCreate, Kind::kPod, "mnist", each.error);
    one.calls.Inject({.matches = [](const client::Call&) { return true; },
                      .before_call = [&] { each.meanwhile(one); }});
    each.before(one);
    const Outcome outcome = one.Create();
    EXPECT_EQ(outcome.next, each.next);
    EXPECT_EQ(Message(outcome.error), each.next == Next::kFailed ? "the operator is stopping" : "");
    EXPECT_EQ(one.Count(Verb::kCreate, Kind::kPod), each.tried);
    EXPECT_EQ(one.counter.failed, each.failed);
    EXPECT_EQ(one.memory.history.refusal, "");
  }
}

}  // namespace
}  // namespace tfjob::control
