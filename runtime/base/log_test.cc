#include "runtime/base/log.h"

#include <gtest/gtest.h>

namespace tfjob {
namespace {

const Logger kTestLog("test");

// Text from a peer or a Kubernetes object must not look like a separate log line.
TEST(Log, KeepsTextFromElsewhereOnItsLine) {
  testing::internal::CaptureStderr();
  kTestLog.Info("worker 0\n2026-01-01T00:00:00Z INFO test all is well\x1b[2J",
                {{"task", "a\rb"}, {"escape", "\x1b[31mred"}, {"rubout", "a\x7f"}, {"plain", "b"}});
  const std::string line = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(line.empty());
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line.find_first_of("\n\r\x1b\x7f"), line.size() - 1) << line;
  EXPECT_NE(line.find("worker 0\\n2026-01-01T00:00:00Z INFO test all is well\\x1b[2J"),
            std::string::npos)
      << line;
  EXPECT_TRUE(line.ends_with(" plain=b\n")) << line;
}

}  // namespace
}  // namespace tfjob
