#include "operator/kube/client/watch_health.h"

#include <gtest/gtest.h>

#include "runtime/base/fake_clock.h"

namespace tfjob::kube {
namespace {

using objects::Kind;

TEST(WatchHealth, AWatchIsInTroubleFromItsBeginningUntilItWorks) {
  FakeClock clock{Time(1h)};
  WatchHealth health(clock);
  const int64_t pods = health.Begin(Kind::kPod, "ns");
  clock.Advance(3s);
  ASSERT_EQ(health.Troubles().size(), 1u);
  EXPECT_EQ(health.Troubles()[0].kind, Kind::kPod);
  EXPECT_EQ(health.Troubles()[0].name_space, "ns");
  EXPECT_EQ(health.Troubles()[0].lasting, 3s);
  EXPECT_EQ(health.Troubles()[0].why.code(), StatusCode::kUnavailable);
  health.Progresses(pods);
  clock.Advance(1s);
  EXPECT_EQ(health.Troubles()[0].lasting, 1s) << "a list that comes page by page is no blindness";
  health.Works(pods);
  EXPECT_TRUE(health.Troubles().empty());
}

TEST(WatchHealth, TroubleLastsSinceTheFirstFailureAndTellsTheLast) {
  FakeClock clock{Time(1h)};
  WatchHealth health(clock);
  const int64_t pods = health.Begin(Kind::kPod, "");
  const int64_t jobs = health.Begin(Kind::kTFJob, "");
  health.Works(pods);
  health.Works(jobs);
  clock.Advance(1h);
  health.Fails(pods, Unavailable("broken"));
  clock.Advance(60s);
  health.Fails(pods, PermissionDenied("forbidden"));
  clock.Advance(60s);
  ASSERT_EQ(health.Troubles().size(), 1u);
  EXPECT_EQ(health.Troubles()[0].lasting, 120s);
  EXPECT_EQ(health.Troubles()[0].why, PermissionDenied("forbidden"));
  health.Works(pods);
  health.Fails(pods, Unavailable("broken"));
  EXPECT_EQ(health.Troubles()[0].lasting, 0s);
  health.End(pods);
  EXPECT_TRUE(health.Troubles().empty());
}

}  // namespace
}  // namespace tfjob::kube
