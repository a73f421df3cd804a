#include "operator/control/call_errors.h"

#include <gtest/gtest.h>

namespace tfjob::control {
namespace {

TEST(CallErrors, AreSorted) {
  const struct {
    Status error;
    bool refusal = false;
    bool may_have_been_executed = false;
    bool transient = false;
    bool gone_or_taken = false;
  } cases[] = {
      {.error = OkStatus()},
      {.error = NotFound("x"), .gone_or_taken = true},
      {.error = AlreadyExists("x")},
      {.error = Aborted("x"), .transient = true, .gone_or_taken = true},
      {.error = InvalidArgument("x"), .refusal = true},
      {.error = PermissionDenied("x"), .refusal = true},
      {.error = FailedPrecondition("x")},
      {.error = Unauthenticated("x")},
      {.error = ResourceExhausted("x"), .transient = true},
      {.error = Internal("x"), .refusal = true, .may_have_been_executed = true, .transient = true},
      {.error = Unavailable("x"), .may_have_been_executed = true, .transient = true},
      {.error = DeadlineExceeded("x"), .may_have_been_executed = true, .transient = true},
      {.error = Cancelled("x")},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(IsRefusal(each.error), each.refusal) << each.error;
    EXPECT_EQ(MayHaveBeenExecuted(each.error), each.may_have_been_executed) << each.error;
    EXPECT_EQ(IsTransient(each.error), each.transient) << each.error;
    EXPECT_EQ(IsGoneOrTaken(each.error), each.gone_or_taken) << each.error;
  }
}

TEST(CallErrors, AConflictBetweenWritesIsUnavailable) {
  EXPECT_EQ(WithoutConflict(Aborted("the quota changed")), Unavailable("the quota changed"));
  EXPECT_EQ(WithoutConflict(NotFound("x")), NotFound("x"));
  EXPECT_EQ(WithoutConflict(OkStatus()), OkStatus());
}

}  // namespace
}  // namespace tfjob::control
