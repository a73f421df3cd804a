#include "operator/service/departure.h"

#include <gtest/gtest.h>

namespace tfjob::service {
namespace {

using enum CancelCalls;

TEST(PlanDeparture, FollowsTheReason) {
  const std::vector<DepartureStep> patient = {{1s, kOfLoop}, {1500ms, kOfLease}};
  const std::vector<DepartureStep> at_once = {{0s, kOfLoop}, {0s, kOfLease}};
  const struct {
    const char* what;
    int reason;
    Departure expected;
  } kCases[] = {
      {"SIGTERM", 15, {0, patient, 300ms}},
      {"SIGINT", 2, {0, patient, 300ms}},
      {"the lease is lost", kLeaseLost, {1, at_once, 0ms}},
      {"the operator gives up", kGivenUp, {1, patient, 300ms}},
      {"the configuration is wrong", kMisconfigured, {2, patient, 300ms}},
  };
  for (const auto& c : kCases) EXPECT_EQ(PlanDeparture(c.reason), c.expected) << c.what;
}

}  // namespace
}  // namespace tfjob::service
