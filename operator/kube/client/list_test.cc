// Tests lists whose pages are longer than the client accepts.
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/kube/client/kube_client.h"
#include "operator/kube/doubles/fake_transport.h"
#include "operator/objects/metadata.h"

namespace tfjob::kube {
namespace {

using client::Object;
using objects::Kind;

class Anonymous : public Credentials {
 public:
  StatusOr<RequestCredentials> Get() override { return RequestCredentials(); }
  void Unauthorized(const RequestCredentials&) override {}
};

// Serves pods in pages. The continue token is the index of the next pod.
class PodServer {
 public:
  explicit PodServer(std::vector<size_t> sizes) : sizes_(std::move(sizes)) {}

  FakeAnswer operator()(const HttpRequest& request) {
    const size_t first = Number(request.target, "continue=", 0);
    const size_t limit = Number(request.target, "limit=", sizes_.size());
    limits.push_back(limit);
    const size_t end = std::min(sizes_.size(), first + limit);
    std::string items;
    for (size_t i = first; i < end; ++i) {
      items += StrCat(i == first ? "" : ",", R"({"metadata":{"name":"pod-)", 1000 + i,
                      R"(","annotations":{"a":")", std::string(sizes_[i], 'x'), R"("}}})");
    }
    const std::string next = end < sizes_.size() ? StrCat(R"(,"continue":")", end, R"(")") : "";
    return Answer(
        200, StrCat(R"({"metadata":{"resourceVersion":"5")", next, R"(},"items":[)", items, "]}"));
  }

  std::vector<size_t> limits;  // the limits in the requests

 private:
  static size_t Number(const std::string& target, const std::string& name, size_t fallback) {
    const size_t at = target.find(name);
    return at == std::string::npos ? fallback : std::stoul(target.substr(at + name.size()));
  }

  const std::vector<size_t> sizes_;
};

StatusOr<std::vector<Object>> ListPods(PodServer& server, size_t max_page_bytes) {
  KubeClientOptions options;
  options.watch.max_page_bytes = max_page_bytes;
  options.watch.seed = 1;
  KubeClient client(std::make_unique<FakeTransport>(
                        [&server](const HttpRequest& request) { return server(request); }),
                    std::make_shared<Anonymous>(), options);
  return client.List(Kind::kPod, "", {});
}

TEST(List, HalvesAPageThatIsTooLong) {
  PodServer server(std::vector<size_t>(1200, 100));
  const auto pods = ListPods(server, 30'000);  // about 190 pods
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_EQ(pods->size(), 1200u);
  for (size_t i = 0; i < pods->size(); ++i) {
    EXPECT_EQ(client::MetadataOf((*pods)[i]).name, StrCat("pod-", 1000 + i));
  }
  EXPECT_EQ(server.limits[0], 500u);
  EXPECT_EQ(server.limits[1], 250u);
  EXPECT_EQ(std::count(server.limits.begin(), server.limits.end(), 125u), 10);
}

TEST(List, FailsIfOneObjectIsTooLong) {
  std::vector<size_t> sizes(10, 10);
  sizes[7] = 5000;
  PodServer server(sizes);
  const auto pods = ListPods(server, 2000);
  EXPECT_EQ(pods.status().code(), StatusCode::kUnavailable) << pods.status();
  EXPECT_EQ(server.limits.back(), 1u);
  PodServer patient(sizes);
  EXPECT_TRUE(ListPods(patient, 6000).ok());
}

}  // namespace
}  // namespace tfjob::kube
