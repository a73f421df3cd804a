// Checks that the REST client fulfils the contract of client::Client, over HTTP and with the
// in-memory store as the server. tests/cluster does the same with a real API server.
#include "operator/client/contract.h"

#include <thread>

#include "operator/kube/client/kube_client.h"
#include "operator/kube/doubles/store_server.h"

namespace tfjob::client {
namespace {

class StoreWorld : public ContractWorld {
 public:
  StoreWorld(bool streaming_list, bool protobuf) : server_({streaming_list, protobuf}) {
    kube::KubeClientOptions options;
    options.watch.policy.page_size = 1;
    auto client = kube::KubeClient::Create(server_.config(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  Client& client() override { return *client_; }
  std::string name_space() override { return "ns"; }
  void Pump() override { std::this_thread::sleep_for(1ms); }

 private:
  kube::StoreServer server_;
  std::unique_ptr<kube::KubeClient> client_;
};

INSTANTIATE_TEST_SUITE_P(
    Kube, ContractTest,
    ::testing::Values(
        ContractTarget{"Pages", [] { return std::make_unique<StoreWorld>(false, true); }},
        ContractTarget{"StreamingList", [] { return std::make_unique<StoreWorld>(true, true); }},
        ContractTarget{"JsonPages", [] { return std::make_unique<StoreWorld>(false, false); }},
        ContractTarget{"Json", [] { return std::make_unique<StoreWorld>(true, false); }}),
    ContractTargetName);

}  // namespace
}  // namespace tfjob::client
