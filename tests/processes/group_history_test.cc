#include "tests/processes/group_history.h"

#include <gtest/gtest.h>

namespace tfjob::processes {
namespace {

std::string Begins(int generation, const std::string& leader, int rank, int tasks) {
  return StrCat("T INFO group joined the group generation=", generation, " leader=\"", leader,
                "\" rank=", rank, " tasks=", tasks, "\n");
}
std::string Step(int step) {
  return StrCat("T INFO train step step=", step, " result=loss:1\n");
}
constexpr char kSaves[] = "T INFO checkpoint saving a checkpoint step=3\n";

TEST(GroupHistory, StepsOfOneGenerationAreThoseOfAllItsTasks) {
  GroupHistory history;
  history.Add(Begins(1, "chief 0", 0, 2) + kSaves + Step(10));
  history.Add(Begins(1, "chief 0", 1, 2) + Step(10));
  history.Add(Begins(2, "chief 0", 0, 1) + Step(20));
  EXPECT_EQ(history.Check(), OkStatus());
  EXPECT_EQ(history.generations(), 2u);
}

TEST(GroupHistory, FindsAStepThatTwoPartsOfAGroupHaveTaken) {
  GroupHistory history;
  history.Add(Begins(2, "chief 0", 0, 1) + Step(10));
  for (const int rank : {0, 1}) history.Add(Begins(2, "worker 0", rank, 2) + Step(10));
  EXPECT_EQ(Message(history.Check()),
            "step 10 was taken in generation 2, led by chief 0, and in generation 2, led by worker "
            "0");
}

TEST(GroupHistory, AStepOfOneTaskMayBeRepeatedWithoutIt) {
  const std::string received =
      "T INFO strategy took over the state of another task task=\"worker 0\" step=10\n" + Step(10);
  GroupHistory history;
  history.Add(Begins(1, "chief 0", 0, 3) + Step(10) + Begins(3, "chief 0", 0, 3) + received);
  for (const int rank : {0, 1}) history.Add(Begins(2, "worker 0", rank, 2) + Step(10));
  history.Add(Begins(3, "chief 0", 2, 3) + received);
  EXPECT_EQ(history.Check(), OkStatus());
}

TEST(GroupHistory, FindsATaskThatSavesWithoutLeading) {
  GroupHistory history;
  history.Add(Begins(4, "chief 0", 1, 2) + kSaves);
  EXPECT_EQ(Message(history.Check()),
            "saved in generation 4, which chief 0 leads: T INFO checkpoint saving a checkpoint "
            "step=3");
}

}  // namespace
}  // namespace tfjob::processes
