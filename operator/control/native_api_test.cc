#include "operator/control/native_api.h"

#include <gtest/gtest.h>

#include <map>

#include "runtime/base/fake_clock.h"

namespace tfjob::control {
namespace {

using objects::Kind;

constexpr char kAlpha1[] = "scheduling.k8s.io/v1alpha1";
constexpr char kAlpha2[] = "scheduling.k8s.io/v1alpha2";
constexpr char kBeta1[] = "scheduling.k8s.io/v1beta1";

class FakeDiscovery : public client::Discovery {
 public:
  StatusOr<std::string> ApiVersion(Kind kind) override {
    ++calls;
    if (!error.ok()) return error;
    const auto found = versions.find(kind);
    if (found == versions.end()) return NotFound("none");
    return found->second;
  }
  void Serve(const char* version) {
    versions = {{Kind::kWorkload, version}, {Kind::kNativePodGroup, version}};
  }

  std::map<Kind, std::string> versions;
  Status error;
  int calls = 0;
};

class NativeApiTest : public ::testing::Test {
 protected:
  std::string Version() { return api_.Version().value_or("error"); }

  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  FakeDiscovery discovery_;
  NativeApi api_{&discovery_, clock_};
};

TEST_F(NativeApiTest, AsksAgainAfterTenMinutes) {
  discovery_.Serve(kAlpha2);
  EXPECT_EQ(Version(), kAlpha2);
  discovery_.Serve(kBeta1);
  const int calls = discovery_.calls;
  clock_.Advance(9min);
  EXPECT_EQ(Version(), kAlpha2);
  EXPECT_EQ(discovery_.calls, calls);
  clock_.Advance(1min);
  EXPECT_EQ(Version(), kBeta1);
}

TEST_F(NativeApiTest, AsksSoonerWhereThereIsNone) {
  EXPECT_EQ(Version(), "");
  discovery_.Serve(kBeta1);
  clock_.Advance(29s);
  EXPECT_EQ(Version(), "");
  clock_.Advance(1s);
  EXPECT_EQ(Version(), kBeta1);
}

TEST_F(NativeApiTest, AsksSoonerWhenInDoubt) {
  discovery_.Serve(kAlpha2);
  EXPECT_EQ(Version(), kAlpha2);
  discovery_.Serve(kBeta1);
  clock_.Advance(30s);
  EXPECT_EQ(Version(), kAlpha2);
  api_.Doubt();
  EXPECT_EQ(Version(), kBeta1);
}

TEST_F(NativeApiTest, TellsOfVersionsWithoutPodGroups) {
  discovery_.versions = {{Kind::kWorkload, kAlpha1}};
  EXPECT_EQ(Version(), kAlpha1);
  discovery_.Serve(kAlpha2);
  clock_.Advance(30s);
  EXPECT_EQ(Version(), kAlpha2);
}

TEST_F(NativeApiTest, KeepsWhatItKnowsWhenTheServerIsSilent) {
  discovery_.error = Unavailable("gone");
  EXPECT_EQ(api_.Version().status().code(), StatusCode::kUnavailable);
  discovery_.error = OkStatus();
  discovery_.Serve(kAlpha2);
  EXPECT_EQ(Version(), kAlpha2);
  discovery_.error = Unavailable("gone");
  clock_.Advance(1h);
  EXPECT_EQ(Version(), kAlpha2);
}

TEST(NativeApi, IsNoneWithoutDiscovery) {
  EXPECT_EQ(NativeApi(nullptr, RealClock()).Version().value_or("error"), "");
}

}  // namespace
}  // namespace tfjob::control
