#include "runtime/state/work_phase.h"

#include <array>

namespace tfjob::state {
namespace {

struct Words {
  std::string_view name, doing;
};
// By the value of the phase.
constexpr std::array<Words, 6> kWords = {{{"none", ""},
                                          {"compiling", "compiling a program"},
                                          {"validating", "validating"},
                                          {"saving", "saving a checkpoint"},
                                          {"restoring", "restoring a checkpoint"},
                                          {"reading", "waiting for data"}}};

}  // namespace

std::string_view Name(WorkPhase phase) {
  return kWords[static_cast<size_t>(phase)].name;
}

std::optional<WorkPhase> ParseWorkPhase(std::string_view name) {
  for (size_t i = 0; i < kWords.size(); ++i) {
    if (kWords[i].name == name) return static_cast<WorkPhase>(i);
  }
  return std::nullopt;
}

std::string_view Doing(WorkPhase phase) {
  return kWords[static_cast<size_t>(phase)].doing;
}

}  // namespace tfjob::state
