#include <string>

#include "absl/strings/str_join.h"
#include "runtime/exec/program_state.h"

namespace tfjob::exec {
namespace {

// Prints where the value is stored, and its operand. Feeds and variables are printed by name ("x",
// "dense/kernel"), constants as "const", values in the arena by offset ("@1024"), and values in the
// memory of a placed fetch by the fetch's name ("@gradients/dense/kernel").
std::string PrintValue(const Plan& plan, const MemoryPlan& memory, const std::vector<Port>& feeds,
                       const Value& value) {
  const auto i = static_cast<size_t>(value.index);
  const std::string operand = " " + value.operand.ToString();
  switch (value.home) {
    case Home::kFeed:
      return feeds[i].name + operand;
    case Home::kVariable:
      return plan.variables[i]->name() + operand;
    case Home::kConstant:
      return "const" + operand;
    case Home::kArena:
      return StrCat("@", memory.offsets[i]) + operand;
    case Home::kCaller:
      return StrCat("@", plan.fetches[i].name) + operand;
  }
  return operand;
}

}  // namespace

std::string Program::ToString() const {
  const State& s = *state_;
  auto print = [&s](const Value& value) { return PrintValue(s.plan, s.memory, s.feeds, value); };
  auto print_all = [&print](const std::vector<Value>& values) {
    return absl::StrJoin(values, ", ", [&print](std::string* out, const Value& value) {
      out->append(print(value));
    });
  };
  std::string text =
      StrCat("program on ", s.device, ": ", s.steps.size(), " kernels in ", s.segments.size(),
             " segments, arena of ", s.memory.arena_bytes, " bytes for ", s.plan.buffers.size(),
             " buffers (", s.memory.unshared_bytes, " without reuse), workspace of ",
             s.workspace_bytes, " bytes\n");
  for (const Port& feed : s.feeds) text += "feed " + feed.name + " " + feed.type.ToString() + "\n";
  for (size_t number = 0; number < s.segments.size(); ++number) {
    const Segment& segment = s.segments[number];
    text += StrCat("segment ", number, "\n");
    for (int i = segment.begin; i < segment.end; ++i) {
      const PlannedStep& step = s.plan.steps[static_cast<size_t>(i)];
      const std::string attributes = step.request.attributes.ToString();
      text += StrCat("  ", i, " ", step.name, ": ", step.request.op, "(", print_all(step.inputs),
                     attributes.empty() ? "" : "; " + attributes, ") -> ", print_all(step.outputs),
                     "\n");
    }
    for (int fetch : segment.announced) {
      text += "  announce " + s.fetches[static_cast<size_t>(fetch)].name + "\n";
    }
  }
  for (const PlannedFetch& fetch : s.plan.fetches) {
    text += "fetch " + fetch.name + " = " + print(fetch.value) + "\n";
  }
  return text;
}

}  // namespace tfjob::exec
