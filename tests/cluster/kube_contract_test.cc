// Tests that the REST client fulfils the contract of client::Client on a real API server. The
// environment variable TFJOB_TEST_KUBECONFIG, which tests/cluster/run.sh sets, names the server's
// kubeconfig. If the variable is not set, the tests are skipped. Every test creates its own
// namespace, and deletes it afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "operator/client/contract.h"
#include "operator/kube/client/kube_client.h"
#include "operator/kube/config/load.h"
#include "operator/objects/custom_resource.h"
#include "runtime/base/check.h"
#include "runtime/base/env.h"

namespace tfjob::kube {
namespace {

constexpr char kCrd[] =
    R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
        "metadata":{"name":"tfjobs.kubeflow.org"},
        "spec":{"group":"kubeflow.org","scope":"Namespaced",
          "names":{"plural":"tfjobs","singular":"tfjob","kind":"TFJob"},
          "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
            "schema":{"openAPIV3Schema":{"type":"object",
              "x-kubernetes-preserve-unknown-fields":true}}}]}})";

ClusterConfig Config() {
  LoadOptions options;
  options.kubeconfig = GetEnv("TFJOB_TEST_KUBECONFIG").value_or("");
  StatusOr<ClusterConfig> config = LoadClusterConfig(options);
  ENFORCE(config.ok(), std::string(Message(config.status())));
  return *std::move(config);
}

// Provides the namespaces and the TFJob CRD that the tests need.
class Cluster {
 public:
  static Cluster& Get() {
    static Cluster cluster;
    return cluster;
  }

  void CreateNamespace(const std::string& name) {
    const Json body = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
    const auto created =
        rest_.Call({"POST", "/api/v1/namespaces", "application/json", PrintJson(body)});
    ENFORCE(created.ok(), std::string(Message(created.status())));
    // If there is a controller manager, pods are rejected until it has created the service account.
    const std::string account = StrCat("/api/v1/namespaces/", name, "/serviceaccounts/default");
    if (managed_) {
      managed_ = Eventually([&] { return rest_.Call({"GET", account, "", ""}).ok(); }, 10s);
    }
  }
  void DeleteNamespace(const std::string& name) {
    rest_.Call({"DELETE", StrCat("/api/v1/namespaces/", name), "", ""}).status().IgnoreError();
  }
  // Returns whether a controller manager is running.
  bool managed() const { return managed_; }

 private:
  Cluster() : rest_(*MakeTransport(Config()), Config().credentials, RestOptions()) {
    const std::string tfjobs = "/apis/kubeflow.org/v1/tfjobs";
    if (rest_.Call({"GET", tfjobs, "", ""}).ok()) return;
    rest_
        .Call({"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
               "application/json", kCrd})
        .status()
        .IgnoreError();
    ENFORCE(Eventually([&] { return rest_.Call({"GET", tfjobs, "", ""}).ok(); }, 60s),
            "the CustomResourceDefinition is not served");
  }

  static bool Eventually(const std::function<bool()>& condition, Duration patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(50ms);
    }
    return true;
  }

  RestClient rest_;
  bool managed_ = true;  // false once a service account was not created in time
};

class KubeWorld : public client::ContractWorld {
 public:
  explicit KubeWorld(bool streaming_list) : name_space_(NewName()) {
    Cluster::Get().CreateNamespace(name_space_);
    KubeClientOptions options;
    options.watch.policy.streaming_list = streaming_list;
    options.watch.policy.page_size = 1;
    auto client = KubeClient::Create(Config(), options);
    ENFORCE(client.ok(), std::string(Message(client.status())));
    client_ = *std::move(client);
  }
  ~KubeWorld() override { Cluster::Get().DeleteNamespace(name_space_); }

  client::Client& client() override { return *client_; }
  std::string name_space() override { return name_space_; }
  void Pump() override { std::this_thread::sleep_for(5ms); }
  bool collects_garbage() override { return Cluster::Get().managed(); }
  // Longer than usual, because the garbage collector needs up to half a minute to discover new
  // custom resources.
  Duration patience() override { return 90s; }

 private:
  static std::string NewName() {
    static std::atomic<int> last = 0;
    static const uint32_t run = std::random_device()();
    return StrCat("contract-", run, "-", ++last);
  }

  const std::string name_space_;
  std::unique_ptr<KubeClient> client_;
};

std::vector<client::ContractTarget> Targets() {
  if (!GetEnv("TFJOB_TEST_KUBECONFIG")) return {};
  return {{"Pages", [] { return std::make_unique<KubeWorld>(false); }},
          {"StreamingList", [] { return std::make_unique<KubeWorld>(true); }}};
}

}  // namespace
}  // namespace tfjob::kube

namespace tfjob::client {

INSTANTIATE_TEST_SUITE_P(Kube, ContractTest, ::testing::ValuesIn(kube::Targets()),
                         ContractTargetName);

}  // namespace tfjob::client
