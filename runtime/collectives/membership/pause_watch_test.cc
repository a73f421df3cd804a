#include "runtime/collectives/membership/pause_watch.h"

#include <gtest/gtest.h>

namespace tfjob::collectives {
namespace {

TEST(PauseWatch, MessagesCountWhileTheProcessRuns) {
  PauseWatch watch(5s, 1s);
  EXPECT_TRUE(watch.IsFresh(100s));
  for (Duration now = 100s; now < 200s; now += 5s) watch.Note(now);
  EXPECT_TRUE(watch.IsFresh(100s));
}

TEST(PauseWatch, MessagesFromBeforeAPauseDoNotCount) {
  PauseWatch watch(5s, 1s);
  watch.Note(100s);
  watch.Note(105s + 1us);
  EXPECT_FALSE(watch.IsFresh(100s));
  EXPECT_FALSE(watch.IsFresh(106s)) << "it may have arrived during the pause";
  EXPECT_TRUE(watch.IsFresh(106s + 1us));
  watch.Note(107s);
  EXPECT_FALSE(watch.IsFresh(106s));
  EXPECT_TRUE(watch.IsFresh(107s));
  watch.Note(200s);
  EXPECT_FALSE(watch.IsFresh(107s)) << "it was paused again";
}

}  // namespace
}  // namespace tfjob::collectives
