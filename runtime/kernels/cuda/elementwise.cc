// Implements the host's side of elementwise.cu. A single op is a program with one step.
#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <sstream>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

struct NamedOp {
  const char* name;
  ElementOp op;
  int operands;
};
constexpr NamedOp kOps[] = {
    {"Add", ElementOp::kAdd, 2},
    {"Sub", ElementOp::kSub, 2},
    {"Mul", ElementOp::kMul, 2},
    {"Div", ElementOp::kDiv, 2},
    {"Maximum", ElementOp::kMaximum, 2},
    {"Minimum", ElementOp::kMinimum, 2},
    {"Pow", ElementOp::kPow, 2},
    {"Neg", ElementOp::kNeg, 1},
    {"Abs", ElementOp::kAbs, 1},
    {"Square", ElementOp::kSquare, 1},
    {"Sqrt", ElementOp::kSqrt, 1},
    {"Rsqrt", ElementOp::kRsqrt, 1},
    {"Exp", ElementOp::kExp, 1},
    {"Log", ElementOp::kLog, 1},
    {"Relu", ElementOp::kRelu, 1},
    {"Sigmoid", ElementOp::kSigmoid, 1},
    {"Tanh", ElementOp::kTanh, 1},
    {"ReluGrad", ElementOp::kReluGrad, 2},
    {"SigmoidGrad", ElementOp::kSigmoidGrad, 2},
    {"TanhGrad", ElementOp::kTanhGrad, 2},
    {"ClipByValue", ElementOp::kClip, 3},
};

const NamedOp* FindOp(std::string_view name) {
  const auto* const found = std::ranges::find(kOps, name, &NamedOp::name);
  return found == std::end(kOps) ? nullptr : found;
}

// Parses an operand of a step: an input ("i0"), an earlier step ("t1") or a number.
StatusOr<ElementSource> ParseSource(std::string_view word, size_t inputs, int steps) {
  // "inf" is a number.
  const bool named = (word.starts_with('i') || word.starts_with('t')) && !word.starts_with("in");
  const char* const begin = word.data() + (named ? 1 : 0);
  const char* const end = word.data() + word.size();
  double number = 0;
  const auto [stop, error] = std::from_chars(begin, end, number);
  if (error == std::errc() && stop == end) {
    if (!named) return ElementSource{ElementSource::kLiteral, 0, static_cast<float>(number)};
    const bool input = word.starts_with('i');
    if (number >= 0 && number < (input ? static_cast<double>(inputs) : steps)) {
      return ElementSource{input ? ElementSource::kInput : ElementSource::kStep,
                           static_cast<int32_t>(number), 0};
    }
  }
  return InvalidArgument("\"", word,
                         "\" in the program is not an input, an earlier step or a number");
}

Status AddStep(const std::string& text, size_t inputs, ElementwiseParameter& parameter) {
  std::istringstream words(text);
  std::string name, word;
  words >> name;
  const NamedOp* const op = FindOp(name);
  if (op == nullptr) return Unimplemented("there is no elementwise op \"", name, "\"");
  if (parameter.steps == kElementSteps)
    return InvalidArgument("a program has 1 to ", kElementSteps, " steps");
  ElementStep step{op->op, {}};
  for (ElementSource& source : step.source) source = {ElementSource::kLiteral, 0, 0};
  for (int i = 0; i < op->operands; ++i) {
    if (!(words >> word)) return InvalidArgument(name, " takes ", op->operands, " operands");
    ASSIGN_OR_RETURN(step.source[i], ParseSource(word, inputs, parameter.steps));
  }
  if (words >> word) return InvalidArgument(name, " takes ", op->operands, " operands");
  parameter.step[parameter.steps++] = step;
  return OkStatus();
}

// Describes how the kernel reads an input, which has the output's shape, or only its last
// dimension, or a single element.
StatusOr<ElementInput> LayoutOf(const Operand& input, const Operand& out) {
  if (input.shape == out.shape) return ElementInput{nullptr, input.row_stride, 1};
  if (input.shape.num_elements() == 1) return ElementInput{nullptr, 0, 0};
  if (input.rows() == 1 && input.cols() == out.cols()) return ElementInput{nullptr, 0, 1};
  return Unimplemented("an input has the shape ", input.shape.ToString(),
                       ": expected that of the output, its last dimension or one element");
}

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(Launcher launcher, const ElementwiseParameter& parameter, size_t inputs)
      : launcher_(std::move(launcher)), parameter_(parameter), inputs_(inputs) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    ElementwiseParameter p = parameter_;
    p.out = static_cast<float*>(outputs[0]);
    for (size_t i = 0; i < inputs_; ++i) p.input[i].data = static_cast<const float*>(inputs[i]);
    Submit(launcher_, "Elementwise", {Blocks(p.count, kElementThreads)}, {kElementThreads}, p,
           stream);
  }

 private:
  const Launcher launcher_;
  const ElementwiseParameter parameter_;
  const size_t inputs_;
};

Prepared PrepareProgram(const Launcher& launcher, const KernelRequest& request,
                        const std::string& program) {
  const size_t inputs = request.inputs.size();
  RETURN_IF_ERROR(cpu::ExpectOperands(request, inputs, 1));
  RETURN_IF_ERROR(ExpectFloat32(request));
  const Operand& out = request.outputs[0];
  RETURN_IF_ERROR(CheckCount(out));
  if (inputs > kElementInputs)
    return Unimplemented("a program has more than ", kElementInputs, " inputs");
  ElementwiseParameter parameter{};
  parameter.count = static_cast<uint32_t>(out.shape.num_elements());
  parameter.cols = static_cast<uint32_t>(out.cols());
  parameter.out_stride = out.row_stride;
  for (size_t i = 0; i < inputs; ++i) {
    ASSIGN_OR_RETURN(parameter.input[i], LayoutOf(request.inputs[i], out));
  }
  std::istringstream steps(program);
  for (std::string step; std::getline(steps, step, ';');)
    RETURN_IF_ERROR(AddStep(step, inputs, parameter));
  if (parameter.steps == 0) return InvalidArgument("a program has 1 to ", kElementSteps, " steps");
  return std::make_unique<ElementwiseKernel>(launcher, parameter, inputs);
}

// Returns the shortest text that is parsed to the same number.
std::string Exactly(double number) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::string(text.data(), end) : "0";
}

// Returns the program for a single op: "Add i0 i1".
std::string ProgramOf(const NamedOp& op, const Attributes& attributes) {
  std::string program = StrCat(op.name, " i0");
  if (op.op == ElementOp::kClip) {
    return StrCat(program, " ", Exactly(cpu::NumberOf(attributes, "clip_value_min", 0)), " ",
                  Exactly(cpu::NumberOf(attributes, "clip_value_max", 0)));
  }
  for (int i = 1; i < op.operands; ++i) program += StrCat(" i", i);
  return program;
}

Status CheckBounds(const Attributes& attributes) {
  const double low = cpu::NumberOf(attributes, "clip_value_min", 0);
  const double high = cpu::NumberOf(attributes, "clip_value_max", 0);
  if (low <= high) return OkStatus();
  return InvalidArgument("clip_value_min ", low, " is above clip_value_max ", high);
}

std::vector<InPlace> InPlaceInputs(int inputs) {
  std::vector<InPlace> in_place;
  for (int i = 0; i < inputs; ++i) in_place.push_back({0, i});
  return in_place;
}

KernelEntry EntryOf(const Launcher& launcher, const NamedOp& op) {
  const int inputs = op.op == ElementOp::kClip ? 1 : op.operands;
  return {[launcher, op, inputs](const KernelRequest& request) -> Prepared {
            RETURN_IF_ERROR(cpu::ExpectOperands(request, static_cast<size_t>(inputs), 1));
            if (op.op == ElementOp::kClip) RETURN_IF_ERROR(CheckBounds(request.attributes));
            return PrepareProgram(launcher, request, ProgramOf(op, request.attributes));
          },
          InPlaceInputs(inputs)};
}

}  // namespace

KernelTable::Entries ElementwiseKernels(const Launcher& launcher) {
  KernelTable::Entries entries;
  for (const NamedOp& op : kOps) entries[op.name] = EntryOf(launcher, op);
  entries["BiasAdd"] = {[launcher](const KernelRequest& request) -> Prepared {
                          RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 1));
                          return PrepareProgram(launcher, request, "Add i0 i1");
                        },
                        InPlaceInputs(1)};
  entries["FusedElementwise"] = {[launcher](const KernelRequest& request) -> Prepared {
                                   return PrepareProgram(
                                       launcher, request,
                                       request.attributes.Get<std::string>("program", ""));
                                 },
                                 InPlaceInputs(4)};
  return entries;
}

}  // namespace tfjob::kernels::cuda
