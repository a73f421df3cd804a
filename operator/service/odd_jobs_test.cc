// Runs tfjob-operator with an API server whose store contains both ordinary TFJobs and TFJobs that
// no decoder accepts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "operator/kube/doubles/store_server.h"
#include "operator/service/kube_cluster.h"
#include "operator/service/run.h"
#include "runtime/base/file.h"

namespace tfjob::service {
namespace {

using objects::Kind;
using SteadyClock = std::chrono::steady_clock;

Json DeepList(int levels) {
  Json value = 1;
  for (int i = 0; i < levels; ++i) value = Json::array({std::move(value)});
  return value;
}

Json ManyObjects(size_t count) {
  return Json(Json::array_t(count, Json::object()));
}

// Returns a TFJob with an extra field in its template.
Json JobWith(const std::string& name, const Json& extra) {
  const Json container = {{"name", "tensorflow"}, {"image", "i"}};
  const Json pod_template = {{"spec", {{"containers", Json::array({container})}}},
                             {"extra", extra}};
  return {{"apiVersion", "kubeflow.org/v1"},
          {"kind", "TFJob"},
          {"metadata", {{"name", name}, {"namespace", "ns"}}},
          {"spec", {{"tfReplicaSpecs", {{"Worker", {{"template", pod_template}}}}}}}};
}

// Runs an operator on a separate thread while this object exists.
class OperatorThread {
 public:
  explicit OperatorThread(const std::string& server)
      : path_(StrCat(::testing::TempDir(), "/odd-kubeconfig-", getpid())) {
    const Json kubeconfig = {
        {"apiVersion", "v1"},
        {"kind", "Config"},
        {"current-context", "a"},
        {"clusters", {{{"name", "a"}, {"cluster", {{"server", server}}}}}},
        {"contexts", {{{"name", "a"}, {"context", {{"cluster", "a"}, {"namespace", "ns"}}}}}}};
    EXPECT_TRUE(WriteFileAtomically(path_, PrintJson(kubeconfig)).ok());
    options_.kubeconfig = path_;
    options_.metrics_address.reset();
    options_.health_address.reset();
    thread_ = std::thread([this] { RunOperator(options_, ConnectKube, stop_, {}); });
  }
  ~OperatorThread() {
    stop_.Request(15);
    thread_.join();
    unlink(path_.c_str());
  }

 private:
  const std::string path_;
  OperatorOptions options_;
  StopSource stop_;
  std::thread thread_;
};

bool Soon(const std::function<bool()>& condition) {
  const auto deadline = SteadyClock::now() + 20s;
  while (!condition() && SteadyClock::now() < deadline) std::this_thread::sleep_for(5ms);
  return condition();
}

class OddJobsTest : public ::testing::TestWithParam<bool> {
 protected:
  store::Store& store() { return server_.store(); }
  void Create(const std::string& name, const Json& extra = nullptr) {
    const auto created = store().Create(Kind::kTFJob, JobWith(name, extra));
    ASSERT_TRUE(created.ok()) << created.status();
  }
  bool HasPod(const std::string& job) {
    return Soon([&] { return store().Get({Kind::kPod, "ns", job + "-worker-0"}).ok(); });
  }
  // Waits for the job's Failed condition and returns its message; "" if the job gets no such
  // condition.
  std::string Failure(const std::string& job) {
    std::string message;
    Soon([&] {
      const StatusOr<Json> object = store().GetJson({Kind::kTFJob, "ns", job});
      const auto conditions = JsonField(*object)["status"]["conditions"].Elements();
      for (const JsonField& condition : *conditions) {
        if (*condition["type"].String() == "Failed") message = *condition["message"].String();
      }
      return !message.empty();
    });
    return message;
  }

  kube::StoreServer server_{{.streaming_list = GetParam()}};
};

// Covers streaming and paged lists, and odd jobs that arrive in the operator's first list, as a
// change, or in the first list of the next operator.
TEST_P(OddJobsTest, FailEachByItselfAndHoldNobodyUp) {
  const std::string deep =
      "TFJob ns/deep has failed because the spec is invalid: "
      "spec.tfReplicaSpecs.Worker.template.extra[0][0][0][0][0][0][0]: "
      "nested deeper than 200 levels";
  Create("before");
  Create("deep", DeepList(3000));
  Create("number", 1e20);
  {
    OperatorThread first(server_.config().server);
    EXPECT_TRUE(HasPod("before"));
    EXPECT_TRUE(HasPod("number"));
    EXPECT_EQ(Failure("deep"), deep);
    Create("many", ManyObjects(400'000));
    Create("deeper", DeepList(300));
    Create("after");
    EXPECT_TRUE(HasPod("after"));
    EXPECT_NE(Failure("many").find("extra: with it, the object has more than 50000 JSON values"),
              std::string::npos);
    EXPECT_NE(Failure("deeper").find("nested deeper than 200 levels"), std::string::npos);
  }
  OperatorThread second(server_.config().server);
  Create("last");
  EXPECT_TRUE(HasPod("last"));
  EXPECT_EQ(Failure("deep"), deep);
  EXPECT_EQ(store().Get({Kind::kPod, "ns", "deep-worker-0"}).status().code(),
            StatusCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Lists, OddJobsTest, ::testing::Bool());

}  // namespace
}  // namespace tfjob::service
