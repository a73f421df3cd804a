#include "operator/render/group_kind.h"

namespace tfjob::render {

using objects::Kind;
using policy::GangScheduler;

Kind PodGroupKind(GangScheduler scheduler) {
  switch (scheduler) {
    case GangScheduler::kNone:
    case GangScheduler::kVolcano:
      return Kind::kPodGroup;
    case GangScheduler::kCoscheduling:
      return Kind::kCoschedulingPodGroup;
    case GangScheduler::kNative:
      return Kind::kNativePodGroup;
  }
  return Kind::kPodGroup;
}

GangScheduler SchedulerOf(Kind kind) {
  if (kind == Kind::kPodGroup) return GangScheduler::kVolcano;
  if (kind == Kind::kCoschedulingPodGroup) return GangScheduler::kCoscheduling;
  return GangScheduler::kNative;
}

}  // namespace tfjob::render
