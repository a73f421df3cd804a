// Tests every verb of `tfjob` that uses a cluster, on a real API server. $TFJOB_TEST_KUBECONFIG
// names the server's kubeconfig. The cluster has no operator and no kubelet; this test acts as
// both.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "operator/api/names.h"
#include "operator/cli/command_line.h"
#include "operator/cli/connect.h"
#include "operator/client/client.h"
#include "runtime/base/env.h"
#include "runtime/base/yaml.h"

namespace tfjob::cli {
namespace {

using objects::Kind;

constexpr char kJob[] = R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {namespace: default}
spec:
  tfReplicaSpecs:
    PS:
      template: {spec: {containers: [{name: tensorflow, image: "none.invalid/trainer:1"}]}}
    Worker:
      replicas: 2
      restartPolicy: OnFailure
      template: {spec: {containers: [{name: tensorflow, image: "none.invalid/trainer:1"}]}}
)";

class VerbsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto kubeconfig = GetEnv("TFJOB_TEST_KUBECONFIG");
    if (!kubeconfig) GTEST_SKIP() << "TFJOB_TEST_KUBECONFIG is not set";
    kubeconfig_ = *kubeconfig;
    const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
    static int count = 0;
    name_ = StrCat("verbs-", getpid(), "-", ++count);
    SCOPED_TRACE(test->name());
    auto cluster = ConnectToCluster({.kubeconfig = kubeconfig_});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    Json job = ParseYaml(kJob, "job")->front();
    job["metadata"]["name"] = name_;
    const auto created = client().Create(Kind::kTFJob, job);
    ASSERT_TRUE(created.ok()) << created.status();
  }
  void TearDown() override {
    if (cluster_) (void)client().Delete({Kind::kTFJob, "default", name_}, {});
  }

  client::Client& client() { return cluster_->client(); }
  Json Stored() {
    const auto object = client().GetJson({Kind::kTFJob, "default", name_});
    EXPECT_TRUE(object.ok()) << object.status();
    return object.value_or(Json::object());
  }
  // Writes the conditions as the operator would.
  void Become(const std::vector<std::string>& conditions) {
    Json job = Stored();
    Json list = Json::array();
    for (const std::string& type : conditions) {
      list.push_back({{"type", type},
                      {"status", "True"},
                      {"reason", "TFJob" + type},
                      {"message", "it is " + type},
                      {"lastUpdateTime", FormatTime(RealClock().Now())},
                      {"lastTransitionTime", FormatTime(RealClock().Now())}});
    }
    job["status"] = {{"conditions", list},
                     {"replicaStatuses", {{"Worker", {{"active", 2}}}, {"PS", {{"active", 1}}}}}};
    const auto written = client().UpdateStatus(Kind::kTFJob, job);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  // Creates a pod that no scheduler will place.
  void CreatePod(const std::string& type, int index) {
    const auto replica = *api::ParseReplicaType(type);
    const Json pod = {
        {"apiVersion", "v1"},
        {"kind", "Pod"},
        {"metadata",
         {{"name", api::ReplicaName(name_, replica, index)},
          {"namespace", "default"},
          {"labels", api::ReplicaLabels(name_, replica, index)},
          {"ownerReferences", Json::array({{{"apiVersion", api::kApiVersion},
                                            {"kind", api::kKind},
                                            {"name", name_},
                                            {"uid", Stored()["metadata"]["uid"]},
                                            {"controller", true}}})}}},
        {"spec",
         {{"schedulerName", "nobody"},
          {"containers", Json::array({{{"name", "tensorflow"}, {"image", "none.invalid/t:1"}}})}}}};
    // Retry, because pods are rejected until the namespace has its service account, which is
    // created slightly later.
    StatusOr<client::Object> created = Unavailable("not tried");
    for (int i = 0; i < 100 && !created.ok(); ++i) {
      if (i > 0) usleep(100'000);
      created = client().Create(Kind::kPod, pod);
    }
    ASSERT_TRUE(created.ok()) << created.status();
  }
  int Call(std::vector<std::string> arguments) {
    out_.str("");
    err_.str("");
    if (arguments.front() != "__complete") arguments.push_back("--kubeconfig=" + kubeconfig_);
    std::vector<const char*> words = {"tfjob"};
    for (const std::string& argument : arguments) words.push_back(argument.c_str());
    const CommandLine line =
        ParseCommandLine(static_cast<int>(words.size()), words.data(), console_);
    return RunCommandLine(line, ConnectToCluster, *stop_, console_);
  }
  std::string Out() { return out_.str(); }
  std::string Err() { return err_.str(); }

  std::string kubeconfig_, name_;
  std::unique_ptr<Cluster> cluster_;
  std::istringstream in_;
  std::ostringstream out_, err_;
  view::Console console_{in_, out_, err_, false};
  std::unique_ptr<StopSource> stop_ = std::make_unique<StopSource>();
};

TEST_F(VerbsTest, GetShowsWhatIsStored) {
  Become({"Created", "Running"});
  EXPECT_EQ(Call({"get", name_}), view::kSucceeded) << Err();
  EXPECT_NE(Out().find(name_ + "   Running   3/3     0"), std::string::npos) << Out();
  EXPECT_EQ(Call({"get", "-A", "-o", "name"}), view::kSucceeded) << Err();
  EXPECT_NE(Out().find("tfjob.kubeflow.org/" + name_), std::string::npos) << Out();
  EXPECT_EQ(Call({"get", name_, "-o", "yaml"}), view::kSucceeded);
  EXPECT_EQ(Out().find("managedFields"), std::string::npos);
  EXPECT_EQ(Call({"get", "nobody"}), view::kFailed);
  EXPECT_NE(Err().find("there is no TFJob default/nobody on https://"), std::string::npos) << Err();
}

TEST_F(VerbsTest, DescribeSaysWhyItWaits) {
  EXPECT_EQ(Call({"describe", name_}), view::kSucceeded) << Err();
  EXPECT_NE(Out().find("No operator has reconciled it"), std::string::npos) << Out();
  Become({"Created"});
  CreatePod("worker", 0);
  CreatePod("worker", 1);
  CreatePod("ps", 0);
  EXPECT_EQ(Call({"describe", name_}), view::kSucceeded) << Err();
  EXPECT_NE(Out().find(" have no node yet, and no scheduler has reported why."), std::string::npos)
      << Out();
}

TEST_F(VerbsTest, ScaleSuspendAndResumeArePatches) {
  EXPECT_EQ(Call({"scale", name_, "--replicas", "worker=3"}), view::kSucceeded) << Err();
  EXPECT_EQ(Stored()["spec"]["tfReplicaSpecs"]["Worker"]["replicas"], 3);
  EXPECT_TRUE(Stored()["spec"]["tfReplicaSpecs"]["Worker"].contains("template"));
  EXPECT_EQ(Call({"suspend", name_}), view::kSucceeded) << Err();
  EXPECT_EQ(Stored()["spec"]["runPolicy"]["suspend"], true);
  EXPECT_EQ(Call({"resume", name_}), view::kSucceeded) << Err();
  EXPECT_EQ(Stored()["spec"]["runPolicy"]["suspend"], false);
  EXPECT_EQ(Call({"scale", name_, "--replicas", "worker=3"}), view::kSucceeded);
  EXPECT_EQ(Out(), StrCat("tfjob.kubeflow.org/", name_, " unchanged\n"));
}

TEST_F(VerbsTest, RestartDeletesPods) {
  Become({"Running"});
  CreatePod("worker", 0);
  CreatePod("worker", 1);
  EXPECT_EQ(Call({"restart", name_, "--replica", "worker/1"}), view::kSucceeded) << Err();
  EXPECT_EQ(Out(), StrCat("pod/", name_, "-worker-1 restarted\n"));
  EXPECT_TRUE(client().Get({Kind::kPod, "default", name_ + "-worker-0"}).ok());
  EXPECT_TRUE(
      absl::IsNotFound(client().Get({Kind::kPod, "default", name_ + "-worker-1"}).status()));
}

TEST_F(VerbsTest, WaitSeesTheConditionCome) {
  std::thread operator_thread([this] {
    usleep(300'000);
    Become({"Created", "Running"});
    Become({"Created", "Succeeded"});
  });
  EXPECT_EQ(Call({"wait", name_, "--for=Succeeded", "--timeout=30s"}), view::kSucceeded) << Err();
  operator_thread.join();
  EXPECT_EQ(Call({"wait", name_, "--for=Failed"}), view::kFailed);
  EXPECT_NE(Err().find("it is Succeeded and will never be Failed"), std::string::npos) << Err();
  EXPECT_EQ(Call({"scale", name_, "--replicas", "4"}), view::kFailed);
}

TEST_F(VerbsTest, GetWatchesUntilItIsStopped) {
  std::thread operator_thread([this] {
    usleep(500'000);
    Become({"Running"});
    usleep(1'000'000);
    stop_->Request(2);
  });
  EXPECT_EQ(Call({"get", name_, "-w"}), 130) << Err();
  operator_thread.join();
  EXPECT_NE(Out().find("<none>"), std::string::npos) << Out();
  EXPECT_NE(Out().find("Running"), std::string::npos) << Out();
}

TEST_F(VerbsTest, LogsSaysWhyThereAreNone) {
  EXPECT_EQ(Call({"logs", name_}), view::kFailed);
  EXPECT_NE(Err().find("it has no pods, so no logs"), std::string::npos) << Err();
  CreatePod("worker", 0);
  EXPECT_EQ(Call({"logs", name_}), view::kFailed);
  EXPECT_NE(Err().find("the log of Pod " + name_ + "-worker-0"), std::string::npos) << Err();
  EXPECT_EQ(Call({"top", name_}), view::kSucceeded) << Err();
  EXPECT_NE(Out().find(StrCat("(", name_, "-worker-0 is Pending)")), std::string::npos) << Out();
}

TEST_F(VerbsTest, RefusalsNameTheServer) {
  EXPECT_EQ(Call({"get", "--as", "jane", "--as-group", "system:authenticated"}), view::kFailed);
  EXPECT_NE(Err().find("refuses access to TFJobs"), std::string::npos) << Err();
  EXPECT_NE(Err().find("jane"), std::string::npos) << Err();
  EXPECT_EQ(Call({"get", "--context", "nowhere"}), view::kBadInput);
  EXPECT_NE(Err().find("nowhere"), std::string::npos) << Err();
}

TEST_F(VerbsTest, CompletesTheNamesOfJobs) {
  const std::string half = name_.substr(0, name_.size() - 1);
  EXPECT_EQ(Call({"__complete", "--kubeconfig", kubeconfig_, "describe", half}), view::kSucceeded);
  EXPECT_NE(Out().find(name_ + "\n"), std::string::npos) << Out();
}

}  // namespace
}  // namespace tfjob::cli
