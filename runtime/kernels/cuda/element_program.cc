#include "runtime/kernels/cuda/element_program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <sstream>
#include <vector>

namespace tfjob::kernels::cuda {
namespace {

const NamedOp* FindOp(std::string_view name) {
  const auto* const found = std::ranges::find(kElementOps, name, &NamedOp::name);
  return found == std::end(kElementOps) ? nullptr : found;
}

// An operand of a step, as the program names it.
struct Source {
  enum Kind { kInput, kStep, kLiteral };
  Kind kind = kLiteral;
  int index = 0;
  float literal = 0;
};
// The numbers of a Dropout, as the kernel needs them.
struct Dropping {
  uint32_t threshold = 0, op_id = 0;
  float scale = 1;
};
struct ProgramStep {
  ElementOp op;
  std::array<Source, 3> source;
  Dropping dropping = {};
};

// Parses an operand of a step: an input ("i0"), an earlier step ("t1") or a number.
StatusOr<Source> ParseSource(std::string_view word, size_t inputs, size_t steps) {
  // "inf" is a number, not an input.
  const bool named = (word.starts_with('i') || word.starts_with('t')) && !word.starts_with("in");
  const char* const begin = word.data() + (named ? 1 : 0);
  const char* const end = word.data() + word.size();
  double number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && stop == end) {
    if (!named) return Source{Source::kLiteral, 0, static_cast<float>(number)};
    const bool input = word.starts_with('i');
    if (number >= 0 && number < static_cast<double>(input ? inputs : steps))
      return Source{input ? Source::kInput : Source::kStep, static_cast<int>(number), 0};
  }
  return InvalidArgument("\"", word,
                         "\" in the program is not an input, an earlier step or a number");
}

// Parses the rate and the op_id of a Dropout.
StatusOr<Dropping> ParseDropping(std::istringstream& words) {
  double rate = -1;
  int64_t op_id = -1;
  if (!(words >> rate >> op_id) || !(rate >= 0 && rate < 1) || op_id < 0 || op_id > UINT32_MAX)
    return InvalidArgument("Dropout takes a rate in [0, 1) and an op_id");
  return Dropping{.threshold = static_cast<uint32_t>(rate * 4294967296.0),  // 2³²
                  .op_id = static_cast<uint32_t>(op_id),
                  .scale = static_cast<float>(1 / (1 - rate))};
}

StatusOr<ProgramStep> ParseStep(const std::string& text, size_t inputs, size_t steps) {
  std::istringstream words(text);
  std::string name, word;
  words >> name;
  const NamedOp* const op = FindOp(name);
  if (op == nullptr) return Unimplemented("there is no elementwise op \"", name, "\"");
  ProgramStep step{op->op, {}};
  for (size_t i = 0; i < static_cast<size_t>(op->operands); ++i) {
    if (!(words >> word)) return InvalidArgument(name, " takes ", op->operands, " operands");
    ASSIGN_OR_RETURN(step.source[i], ParseSource(word, inputs, steps));
  }
  if (op->op == ElementOp::kDropout) {
    ASSIGN_OR_RETURN(step.dropping, ParseDropping(words));
  }
  if (words >> word) return InvalidArgument(name, " takes ", op->operands, " operands");
  return step;
}

StatusOr<std::vector<ProgramStep>> ParseProgram(const std::string& program, size_t inputs) {
  std::vector<ProgramStep> steps;
  std::istringstream texts(program);
  for (std::string text; std::getline(texts, text, ';');) {
    ASSIGN_OR_RETURN(steps.emplace_back(), ParseStep(text, inputs, steps.size()));
  }
  if (steps.empty() || steps.size() > kElementSteps)
    return InvalidArgument("a program has 1 to ", kElementSteps, " steps");
  return steps;
}

// Assigns slots to the results that are needed after the next step.
class SlotChooser {
 public:
  explicit SlotChooser(const std::vector<ProgramStep>& steps)
      : steps_(steps), last_use_(steps.size(), 0), slots_(steps.size(), -1) {
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const Source& source : steps[i].source)
        if (source.kind == Source::kStep) last_use_[static_cast<size_t>(source.index)] = i;
    }
  }

  // Writes the steps to the parameter, and returns the number of slots.
  int Write(ElementwiseParameter& parameter) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      ElementStep& step = parameter.step[i];
      step.op = steps_[i].op;
      for (size_t k = 0; k < steps_[i].source.size(); ++k)
        step.source[k] = Located(steps_[i].source[k], i);
      if (step.op == ElementOp::kDropout) {
        const Dropping& d = steps_[i].dropping;
        step.source[1] = {ElementSource::kLiteral, static_cast<int32_t>(d.op_id), d.scale};
        step.source[2] = {ElementSource::kLiteral, static_cast<int32_t>(d.threshold), 0};
      }
      Release(i);
      if (last_use_[i] > i + 1) slots_[i] = Take();
      step.keep = slots_[i];
    }
    parameter.steps = static_cast<int32_t>(steps_.size());
    return static_cast<int>(taken_.size());
  }

 private:
  ElementSource Located(const Source& source, size_t step) const {
    if (source.kind == Source::kInput) return {ElementSource::kInput, source.index, 0};
    if (source.kind == Source::kLiteral) return {ElementSource::kLiteral, 0, source.literal};
    const auto index = static_cast<size_t>(source.index);
    if (index + 1 == step) return {ElementSource::kLast, 0, 0};
    return {ElementSource::kSlot, slots_[index], 0};
  }
  // Frees the slots that are not needed after this step.
  void Release(size_t step) {
    for (size_t i = 0; i < step; ++i)
      if (slots_[i] >= 0 && last_use_[i] == step) taken_[static_cast<size_t>(slots_[i])] = false;
  }
  int Take() {
    const auto free = std::ranges::find(taken_, false);
    const auto slot = free - taken_.begin();
    if (free == taken_.end()) taken_.push_back(false);
    taken_[static_cast<size_t>(slot)] = true;
    return static_cast<int>(slot);
  }

  const std::vector<ProgramStep>& steps_;
  std::vector<size_t> last_use_;  // by step
  std::vector<int> slots_;        // by step; -1: none
  std::vector<bool> taken_;       // by slot
};

}  // namespace

StatusOr<ProgramNeeds> WriteProgram(const std::string& program, size_t inputs,
                                    ElementwiseParameter& parameter) {
  ASSIGN_OR_RETURN(const std::vector<ProgramStep> steps, ParseProgram(program, inputs));
  const int slots = SlotChooser(steps).Write(parameter);
  if (slots > kElementSlots) {
    return Unimplemented("a fused elementwise operation that keeps ", slots,
                         " intermediate results: on a GPU, at most ", kElementSlots,
                         " are possible");
  }
  const bool random = std::ranges::any_of(
      steps, [](const ProgramStep& step) { return step.op == ElementOp::kDropout; });
  return ProgramNeeds{.slots = slots > 0, .random_words = random};
}

}  // namespace tfjob::kernels::cuda
