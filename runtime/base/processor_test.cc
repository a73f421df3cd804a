#include "runtime/base/processor.h"

#include <gtest/gtest.h>

namespace tfjob {
namespace {

TEST(Processor, EndsAProgramThatIsNotMadeForIt) {
  EXPECT_EXIT(RequireProcessor(false), ::testing::ExitedWithCode(1),
              "_test: this processor lacks AVX2, FMA or another part of x86-64-v3");
  RequireProcessor(true);
}

}  // namespace
}  // namespace tfjob
