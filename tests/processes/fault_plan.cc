#include "tests/processes/fault_plan.h"

#include <random>

#include "absl/strings/str_format.h"
#include "runtime/rpc/liveness.h"

namespace tfjob::processes {
namespace {

// Draws numbers that are the same with every standard library.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  size_t Below(size_t end) { return static_cast<size_t>(engine_() % end); }
  double Between(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  Duration Time(double low_secs, double high_secs) {
    return std::chrono::milliseconds(
        static_cast<int64_t>(Between(low_secs * 1000, high_secs * 1000)));
  }

 private:
  std::mt19937_64 engine_;
};

double Seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Draws when the fault is due. Half of the faults are due after a fraction of the steps. The other
// half are due soon after the start or the previous fault, while the job is starting or recovering.
void DrawTime(Dice& dice, bool first, double part_before, Fault& fault) {
  if (dice.Below(2) == 0) {
    fault.part = dice.Between(part_before, 0.9);
  } else {
    fault.delay = dice.Time(0, first ? 2 : 4);
  }
}

}  // namespace

std::vector<Fault> DrawFaults(uint64_t seed, const std::vector<cluster::Task>& tasks,
                              bool cuts_off) {
  const double lease = Seconds(rpc::LivenessRules().lease);
  Dice dice(seed);
  std::vector<Fault> faults(1 + dice.Below(3));
  double part = 0;
  for (Fault& fault : faults) {
    DrawTime(dice, &fault == &faults.front(), part, fault);
    part = std::max(part, fault.part);
    fault.victim = tasks[dice.Below(tasks.size())];
    fault.cuts_off = cuts_off && dice.Below(2) == 0;
    switch (dice.Below(fault.cuts_off ? 2 : 4)) {
      case 0:
        fault.stop = dice.Time(0.2, 4);
        break;
      case 1:
        fault.stop = dice.Time(lease + 0.5, lease + 3);
        break;
      default:  // is killed
        break;
    }
  }
  return faults;
}

std::string ToString(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) {
    if (!text.empty()) text += "; ";
    if (fault.part > 0) {
      text += absl::StrFormat("after %.0f %% of the steps, ", fault.part * 100);
    } else {
      text += absl::StrFormat("%.1f s later, ", Seconds(fault.delay));
    }
    text += StrCat(fault.kill()     ? "kill "
                   : fault.cuts_off ? "cut off "
                                    : "stop ",
                   fault.victim.type, " ", fault.victim.index);
    if (!fault.kill()) text += absl::StrFormat(" for %.1f s", Seconds(fault.stop));
  }
  return text;
}

}  // namespace tfjob::processes
