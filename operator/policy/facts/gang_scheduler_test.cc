#include "operator/policy/facts/gang_scheduler.h"

#include <gtest/gtest.h>

#include "operator/api/names.h"
#include "operator/api/validate.h"
#include "operator/policy/testing.h"

namespace tfjob::policy {
namespace {

using objects::Kind;
using enum GangScheduler;

// Checks every field of every scheduler's row.
TEST(GangTraits, AnswersAllQuestions) {
  const struct {
    GangScheduler scheduler;
    const char* name;
    const char* scheduler_name;
    std::vector<Kind> kinds;
    // The bool members, in the order of the struct: any name, workload, admission, resources,
    // queue, priority class, timeout.
    std::vector<bool> flags;
    std::vector<std::string> marks;  // group label, group annotation, type annotation
  } kCases[] = {
      {kNone, "none", "", {}, {false, false, false, false, false, false, false}, {"", "", ""}},
      {kVolcano,
       "volcano",
       "volcano",
       {Kind::kPodGroup},
       {false, false, true, true, true, true, false},
       {"", "scheduling.k8s.io/group-name", "volcano.sh/task-spec"}},
      {kCoscheduling,
       "scheduler-plugins",
       "scheduler-plugins-scheduler",
       {Kind::kCoschedulingPodGroup},
       {true, false, false, true, false, false, true},
       {"scheduling.x-k8s.io/pod-group", "", ""}},
      {kNative,
       "native",
       "default-scheduler",
       {Kind::kWorkload, Kind::kNativePodGroup},
       {false, true, false, false, false, false, false},
       {"", "", ""}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const GangTraits& traits = TraitsOf(c.scheduler);
    EXPECT_EQ(traits.scheduler, c.scheduler);
    EXPECT_EQ(traits.name, c.name);
    EXPECT_EQ(Name(c.scheduler), c.name);
    EXPECT_EQ(traits.scheduler_name, c.scheduler_name);
    EXPECT_EQ(GangKindsOf(c.scheduler), c.kinds);
    EXPECT_EQ(
        (std::vector<bool>{traits.has_any_name, traits.has_workload, traits.waits_for_admission,
                           traits.has_min_resources, traits.has_queue, traits.has_priority_class,
                           traits.has_schedule_timeout}),
        c.flags);
    EXPECT_EQ((std::vector<std::string>{std::string(traits.group_label),
                                        std::string(traits.group_annotation),
                                        std::string(traits.type_annotation)}),
              c.marks);
  }
}

TEST(GangTraits, AreFoundByNameByKindAndByApiGroup) {
  for (const GangScheduler scheduler : {kVolcano, kCoscheduling, kNative}) {
    const GangTraits& traits = TraitsOf(scheduler);
    EXPECT_EQ(FindGangScheduler(traits.name), &traits);
    EXPECT_TRUE(objects::IsPodGroup(traits.pod_group_kind));
    EXPECT_EQ(SchedulerOf(traits.pod_group_kind), scheduler);
    EXPECT_EQ(FindGangSchedulerOfGroup(objects::NewestApiVersion(traits.pod_group_kind)), &traits);
  }
  EXPECT_EQ(FindGangScheduler("none"), &TraitsOf(kNone));
  EXPECT_EQ(FindGangScheduler("vulcano"), nullptr);
  EXPECT_EQ(FindGangSchedulerOfGroup("scheduling.volcano.sh/v9"), &TraitsOf(kVolcano));
  EXPECT_EQ(FindGangSchedulerOfGroup("scheduling.volcano.sh"), nullptr);
  EXPECT_EQ(FindGangSchedulerOfGroup("v1"), nullptr);
}

// Validation has its own list of names, because api/ does not depend on the table of schedulers.
// That list must contain every scheduler in the table.
TEST(GangTraits, ValidationAcceptsEveryName) {
  api::TFJob job = testing::MakeJob({{}});
  for (const GangScheduler scheduler : {kNone, kVolcano, kCoscheduling, kNative}) {
    job.metadata.annotations[api::kGangSchedulerAnnotation] = Name(scheduler);
    EXPECT_TRUE(api::Validate(job).empty()) << Name(scheduler);
  }
}

}  // namespace
}  // namespace tfjob::policy
