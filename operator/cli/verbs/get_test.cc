#include "operator/cli/verbs/get.h"

#include <gtest/gtest.h>

#include <thread>

#include "operator/cli/verbs/testing.h"
#include "operator/client/faults.h"
#include "operator/client/forwarding_client.h"
#include "operator/objects/custom_resource.h"

namespace tfjob::cli {
namespace {

using objects::Kind;
using testing::Conditions;

class GetTest : public ::testing::Test {
 protected:
  void CreateJobs() {
    world_.cluster.CreateJob(
        "mnist", "{Chief: {replicas: 1}, Worker: {replicas: 3}}",
        "{" + Conditions({{"Created", "True"}, {"Running", "True"}}) +
            ", startTime: \"2026-11-21T09:00:00Z\", replicaStatuses: {Chief: {active: 1}, Worker: "
            "{active: 2, failed: 1, restarts: 4}}}");
    world_.cluster.CreateJob("new", "{Worker: {}}");
    world_.cluster.clock().Advance(5min + 12s);
  }
  int Call(GetOptions options) { return Get(options, world_.context); }

  testing::World world_;
};

TEST_F(GetTest, ListsJobsAsKubectlDoes) {
  CreateJobs();
  EXPECT_EQ(Call({}), view::kSucceeded);
  EXPECT_EQ(world_.Out(),
            "NAME    STATE     READY   RESTARTS   AGE\n"
            "mnist   Running   3/4     4          5m12s\n"
            "new     <none>    0/1     0          5m12s\n");
}

TEST_F(GetTest, WideTellsMore) {
  CreateJobs();
  EXPECT_EQ(Call({{{"tfjob/mnist"}}, GetOptions::Output::kWide}), view::kSucceeded);
  EXPECT_EQ(world_.Out(),
            "NAME    STATE     READY   RESTARTS   AGE     DURATION   REPLICAS                "
            "MESSAGE\n"
            "mnist   Running   3/4     4          5m12s   5m12s      Chief 1/1, Worker 2/3   "
            "TFJob ns/mnist is Running.\n");
}

// Simulates a cluster whose client cannot read a part of the job "new".
class PartlyUnreadable : public client::ForwardingClient {
 public:
  using ForwardingClient::ForwardingClient;
  StatusOr<std::vector<client::Object>> List(objects::Kind kind, const std::string& name_space,
                                             const client::LabelSelector& selector) override {
    auto objects = ForwardingClient::List(kind, name_space, selector);
    for (client::Object& object : *objects) {
      auto job = *client::As<objects::CustomResource>(object);
      if (job.metadata.name != "new") continue;
      job.problem = InvalidArgument("spec.x\x1b[2J: nested deeper than 200 levels\nspec.y: too");
      object = std::make_shared<const objects::CustomResource>(std::move(job));
    }
    return objects;
  }
};

TEST_F(GetTest, ListsAJobThatCannotBeReadBesideTheOthers) {
  CreateJobs();
  PartlyUnreadable client(world_.cluster.store());
  world_.cluster.Serve(client);
  EXPECT_EQ(Call({}), view::kSucceeded);
  EXPECT_EQ(world_.Out(),
            "NAME    STATE     READY   RESTARTS   AGE\n"
            "mnist   Running   3/4     4          5m12s\n"
            "new     <none>    ?       0          5m12s\n");
  EXPECT_EQ(world_.Err(), "");
  EXPECT_EQ(Call({{}, GetOptions::Output::kYaml}), view::kSucceeded);
  EXPECT_NE(world_.Out().find("name: new"), std::string::npos);
  EXPECT_EQ(world_.Err(),
            "tfjob: warning: TFJob ns/new is printed without what cannot be read: "
            "spec.x\\u001b[2J: nested deeper than 200 levels\n"
            "tfjob: warning: TFJob ns/new is printed without what cannot be read: spec.y: too\n");
}

TEST_F(GetTest, ListsAllNamespacesAndSelectsByLabel) {
  CreateJobs();
  world_.cluster.SetNamespace("other");
  world_.cluster.CreateJob("third", "{Worker: {}}");
  EXPECT_EQ(Call({{{}, true}}), view::kSucceeded);
  EXPECT_EQ(world_.Out(),
            "NAMESPACE   NAME    STATE     READY   RESTARTS   AGE\n"
            "ns          mnist   Running   3/4     4          5m12s\n"
            "ns          new     <none>    0/1     0          5m12s\n"
            "other       third   <none>    0/1     0          0s\n");
  EXPECT_EQ(Call({{{}, true, {{"team", "a"}}}}), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "");
  EXPECT_EQ(world_.Err(), "No TFJobs found.\n");
}

TEST_F(GetTest, PrintsNamesAndWholeObjects) {
  CreateJobs();
  EXPECT_EQ(Call({{}, GetOptions::Output::kName}), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "tfjob.kubeflow.org/mnist\ntfjob.kubeflow.org/new\n");
  EXPECT_EQ(Call({{{"new"}}, GetOptions::Output::kYaml}), view::kSucceeded);
  EXPECT_TRUE(world_.Out().starts_with("apiVersion: kubeflow.org/v1\nkind: TFJob\n"));
  EXPECT_EQ(Call({{}, GetOptions::Output::kJson}), view::kSucceeded);
  EXPECT_NE(world_.Out().find("\"kind\": \"List\""), std::string::npos);
}

TEST_F(GetTest, AJobThatIsNotThereIsAnErrorAndTheOthersAreShown) {
  CreateJobs();
  EXPECT_EQ(Call({{{"nobody", "new"}}}), view::kFailed);
  EXPECT_EQ(world_.Out(),
            "NAME   STATE    READY   RESTARTS   AGE\nnew    <none>   0/1     0          5m12s\n");
  EXPECT_EQ(world_.Err(),
            "tfjob: there is no TFJob ns/nobody on https://test:6443 (context dev); tfjob get -A "
            "lists all TFJobs\n");
}

TEST_F(GetTest, ASpecThatCannotBeReadIsShownAllTheSame) {
  world_.cluster.Create(
      Kind::kTFJob,
      "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: old, namespace: "
      "ns}, spec: {tfReplicaSpecs: {Wroker: {}}}, status: {" +
          Conditions({{"Failed", "True"}}) + "}}");
  EXPECT_EQ(Call({}), view::kSucceeded);
  EXPECT_EQ(world_.Out(),
            "NAME   STATE    READY   RESTARTS   AGE\nold    Failed   ?       0          0s\n");
}

struct Refusal {
  Status status;
  const char* message;
};

TEST_F(GetTest, ErrorsNameTheServerAndWhatToChange) {
  const std::vector<Refusal> refusals = {
      {Unavailable("connection refused"),
       "https://test:6443 (context dev) does not answer: connection refused; is it running, and is "
       "it the right server (--context, --kubeconfig)?"},
      {PermissionDenied("tfjobs.kubeflow.org is forbidden"),
       "https://test:6443 (context dev) refuses access to TFJobs: tfjobs.kubeflow.org is "
       "forbidden; "
       "request the permission, or choose another --context or --as"},
      {Unauthenticated("Unauthorized"),
       "https://test:6443 (context dev) does not accept the credentials: Unauthorized; renew them, "
       "or choose another --context or --kubeconfig"},
      {Unavailable("list TFJobs: the server could not find the requested resource"),
       "https://test:6443 (context dev) does not serve TFJobs (list TFJobs: the server could not "
       "find the requested resource): install the operator's CRDs, see docs/installing.md"}};
  for (const Refusal& refusal : refusals) {
    client::FaultyClient faulty(world_.cluster.store());
    faulty.Inject({.matches = [](const client::Call&) { return true; }, .error = refusal.status});
    world_.cluster.Serve(faulty);
    EXPECT_EQ(Call({}), view::kFailed);
    EXPECT_EQ(world_.Err(), StrCat("tfjob: ", refusal.message, "\n"));
  }
}

// Runs `get --watch` for the job mnist, calls `change`, and waits until the output
// contains `until`.
class WatchTest : public GetTest {
 protected:
  std::string Watch(const std::function<void()>& change, const std::string& until) {
    // Locks the buffer, because the test reads the output while Get() writes it.
    class Buffer : public std::stringbuf {
     public:
      std::string Text() {
        MutexLock lock(mutex_);
        return text_;
      }

     protected:
      std::streamsize xsputn(const char* text, std::streamsize size) override {
        MutexLock lock(mutex_);
        text_.append(text, static_cast<size_t>(size));
        return size;
      }
      int overflow(int c) override {
        const char one = static_cast<char>(c);
        xsputn(&one, 1);
        return c;
      }

     private:
      Mutex mutex_;
      std::string text_;
    } buffer;
    std::ostream out(&buffer);
    view::Console console{world_.in, out, world_.err, false};
    const VerbContext context{world_.cluster, console, world_.stop, world_.cluster.clock()};
    GetOptions options;
    options.selection.names = {"mnist"};
    options.watch = true;
    int code = -1;
    std::thread watcher([&] { code = Get(options, context); });
    const auto await = [&](const std::string& text) {
      const auto deadline = std::chrono::steady_clock::now() + 20s;
      while (buffer.Text().find(text) == std::string::npos &&
             std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(1ms);
      }
    };
    await("mnist");
    change();
    await(until);
    world_.stop.Request(2);
    watcher.join();
    EXPECT_EQ(code, view::kSucceeded);
    return buffer.Text();
  }
};

TEST_F(WatchTest, WritesALineForEachChangeOfTheNamedJob) {
  CreateJobs();
  const std::string text = Watch(
      [&] {
        const std::string running = Conditions({{"Created", "True"}, {"Running", "True"}});
        // This write does not change the row, so `get` must not print a line.
        world_.cluster.WriteStatus(
            Kind::kTFJob, "mnist",
            "{" + running +
                ", replicaStatuses: {Chief: {active: 1}, Worker: {active: 2, restarts: 4}}}");
        world_.cluster.WriteStatus(Kind::kTFJob, "new", "{" + running + "}");
        world_.cluster.WriteStatus(Kind::kTFJob, "mnist",
                                   "{" + Conditions({{"Succeeded", "True"}}) + "}");
        ASSERT_TRUE(world_.cluster.store().Delete({Kind::kTFJob, "ns", "mnist"}, {}).ok());
      },
      "(deleted)");
  EXPECT_EQ(text,
            "NAME    STATE     READY   RESTARTS   AGE\n"
            "mnist   Running   3/4     4          5m12s\n"
            "mnist   Succeeded   0/4     0          5m12s\n"
            "mnist   (deleted)   0/4     0          5m12s\n");
}

}  // namespace
}  // namespace tfjob::cli
