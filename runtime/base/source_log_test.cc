#include "runtime/base/source_log.h"

#include <gtest/gtest.h>

#include "runtime/base/status.h"

namespace tfjob {
namespace {

TEST(SourceLog, NotesEverySourceOnceInAWhile) {
  SourceLog log;
  EXPECT_EQ(log.Note("10.0.0.1", 1s), 0u);
  EXPECT_EQ(log.Note("10.0.0.1", 2s), std::nullopt);
  EXPECT_EQ(log.Note("10.0.0.2", 2s), 0u);
  EXPECT_EQ(log.Note("10.0.0.1", 3s), std::nullopt);
  EXPECT_EQ(log.Note("10.0.0.1", 1s + SourceLog::kSilence), 2u);
}

TEST(SourceLog, RemembersALimitedNumberOfSources) {
  SourceLog log;
  int logged = 0;
  for (int i = 0; i < 10'000; ++i)
    logged += log.Note(StrCat("10.0.", i / 256, ".", i % 256), 1s).has_value();
  EXPECT_EQ(logged, static_cast<int>(SourceLog::kMaxSources) + 1);
  EXPECT_EQ(log.Note("10.9.9.9", 1s + SourceLog::kSilence), 0u);
}

}  // namespace
}  // namespace tfjob
