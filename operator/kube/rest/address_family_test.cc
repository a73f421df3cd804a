#include "operator/kube/rest/address_family.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace tfjob::kube {
namespace {

TEST(AddressFamily, IsLearntWhenTheNameDidNotResolveAtFirst) {
  std::optional<int> answer;
  int asked = 0;
  AddressFamily family("server", std::nullopt, [&](const std::string& host) {
    EXPECT_EQ(host, "server");
    ++asked;
    return answer;
  });
  EXPECT_EQ(family.known(), std::nullopt);
  family.Learn();
  EXPECT_EQ(family.known(), std::nullopt);
  answer = AF_INET6;
  EXPECT_EQ(asked, 1);  // only Learn() resolves
  family.Learn();
  EXPECT_EQ(family.known(), AF_INET6);
  family.Learn();
  EXPECT_EQ(asked, 2);
}

TEST(AddressFamily, IsNotAskedForWhenItIsKnown) {
  AddressFamily family("server", AF_INET, [](const std::string&) -> std::optional<int> {
    ADD_FAILURE() << "resolved";
    return std::nullopt;
  });
  family.Learn();
  EXPECT_EQ(family.known(), AF_INET);
}

TEST(AddressFamily, OfAnAddressIsWhatItIs) {
  EXPECT_EQ(FamilyOf("127.0.0.1"), AF_INET);
  EXPECT_EQ(FamilyOf("no such name"), std::nullopt);
}

}  // namespace
}  // namespace tfjob::kube
