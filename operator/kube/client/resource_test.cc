#include "operator/kube/client/resource.h"

#include <gtest/gtest.h>

#include "runtime/base/clock.h"

namespace tfjob::kube {
namespace {

using objects::Kind;

TEST(Resource, FindsNetworkPolicies) {
  const std::string version = CandidateApiVersions(Kind::kNetworkPolicy).front();
  EXPECT_TRUE(HasOneVersion(Kind::kNetworkPolicy));
  EXPECT_EQ(ObjectPath({Kind::kNetworkPolicy, "ns", "a"}, version),
            "/apis/networking.k8s.io/v1/namespaces/ns/networkpolicies/a");
  EXPECT_EQ(CollectionPath(Kind::kNetworkPolicy, version, ""),
            "/apis/networking.k8s.io/v1/networkpolicies");
}

}  // namespace
}  // namespace tfjob::kube
