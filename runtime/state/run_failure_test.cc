#include "runtime/state/run_failure.h"

#include <gtest/gtest.h>

namespace tfjob::state {
namespace {

TEST(RunFailure, IsToldFromOtherErrors) {
  EXPECT_TRUE(IsRunFailure(RunFailure("step 3: the loss is NaN")));
  EXPECT_EQ(Message(RunFailure("step 3: the loss is NaN")), "step 3: the loss is NaN");
  EXPECT_FALSE(IsRunFailure(FailedPrecondition("step 3: the loss is NaN")));
  EXPECT_FALSE(IsRunFailure(OkStatus()));
}

TEST(RunFailure, ItsWordsAreOneShortPrintableLine) {
  EXPECT_EQ(Message(RunFailure("a\nb\x1b[31m\xff")), "a?b?[31m?");
  EXPECT_EQ(Message(RunFailure(std::string(5000, 'x'))), std::string(kMaxFailureBytes, 'x'));
}

}  // namespace
}  // namespace tfjob::state
