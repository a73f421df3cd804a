// Implements the host's side of elementwise.cu. A single op is a program with one step.
#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "runtime/kernels/cuda/element_program.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/loops_of.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns how the kernel reads an input. The input must have the output's shape, only its last
// dimension, all but its last dimension, or a single element.
StatusOr<ElementInput> LayoutOf(const Operand& input, const Operand& out) {
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(input.dtype));
  if (input.shape == out.shape) return ElementInput{nullptr, input.row_stride, 1, type};
  if (input.shape.num_elements() == 1) return ElementInput{nullptr, 0, 0, type};
  if (input.rows() == 1 && input.cols() == out.cols()) return ElementInput{nullptr, 0, 1, type};
  if (input.shape.rank() == out.shape.rank()) {
    std::vector<int64_t> dims = out.shape.dims();
    dims.back() = 1;
    if (input.shape == Shape(dims)) return ElementInput{nullptr, input.row_stride, 0, type};
  }
  return Unimplemented("an input has the shape ", input.shape.ToString(),
                       ": expected that of the output, its last dimension, its other dimensions "
                       "or one element");
}

// Treats the output as a single row if every operand either has a single element or stores all
// elements contiguously.
void JoinRows(ElementwiseParameter& p, size_t inputs) {
  const auto one_row = [&p](const ElementInput& input) {
    return input.column_step == 1 ? input.row_stride == p.cols : input.row_stride == 0;
  };
  if (p.out_stride != p.cols || !std::all_of(p.input, p.input + inputs, one_row)) return;
  p.cols = p.count;
  p.out_stride = p.count;
}

// A copy, broadcast to the output's shape, of an input that the kernel cannot read in place. The
// copy is stored in the workspace.
struct Broadcast {
  size_t input = 0;
  BlockMove move;
};

struct ElementwiseLaunch {
  ElementwiseParameter parameter{};  // complete except for the pointers
  size_t inputs = 0;                 // without the step and the seed
  ProgramNeeds needs;
  Writes writes = Writes::kValue;
  std::vector<Broadcast> broadcasts;
};

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(Launcher launcher, ElementwiseLaunch launch)
      : launcher_(std::move(launcher)),
        parameter_(launch.parameter),
        inputs_(launch.inputs),
        name_(NameOf(launch.needs)),
        random_words_(launch.needs.random_words),
        writes_(launch.writes),
        broadcasts_(std::move(launch.broadcasts)) {}

  size_t workspace_bytes() const override {
    size_t bytes = 0;
    for (const Broadcast& broadcast : broadcasts_) bytes += BytesOf(broadcast);
    return bytes;
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    ElementwiseParameter p = parameter_;
    if (writes_ == Writes::kVariable) p.refusal = RefusalOf(stream);
    p.out = outputs[0];
    for (size_t i = 0; i < inputs_; ++i) p.input[i].data = inputs[i];
    if (random_words_) {
      p.words.step = static_cast<const int64_t*>(inputs[inputs_]);
      p.words.seed = static_cast<const int64_t*>(inputs[inputs_ + 1]);
    }
    auto* space = static_cast<std::byte*>(workspace);
    for (const Broadcast& broadcast : broadcasts_) {
      SubmitMove(launcher_, broadcast.move, inputs[broadcast.input], space, stream);
      p.input[broadcast.input].data = space;
      space += BytesOf(broadcast);
    }
    p.vectors = HasVectors(p) ? 1 : 0;
    Submit(launcher_, name_, {Blocks(p.count, kElementsPerBlock)}, {kElementThreads}, p, stream);
  }

 private:
  static const char* NameOf(const ProgramNeeds& needs) {
    if (needs.random_words) return "ElementwiseWithDropout";
    return needs.slots ? "ElementwiseWithSlots" : "Elementwise";
  }

  // Returns the size of the copy in the workspace, rounded up so that the next copy is aligned.
  size_t BytesOf(const Broadcast& broadcast) const {
    constexpr size_t kAlignment = 64;
    const size_t bytes = parameter_.count * static_cast<size_t>(broadcast.move.parameter.bytes);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Returns whether the kernel can read and write four consecutive elements at once.
  bool HasVectors(const ElementwiseParameter& p) const {
    const bool one_row = p.count == p.cols;
    const auto fits = [one_row](const void* data, FloatType type, int64_t row_stride) {
      const unsigned bytes = type == FloatType::kFloat32 ? 16 : 8;
      return reinterpret_cast<uintptr_t>(data) % bytes == 0 && (one_row || row_stride % 4 == 0);
    };
    if (!one_row && p.cols % 4 != 0) return false;
    if (!fits(p.out, p.out_type, p.out_stride)) return false;
    return std::all_of(p.input, p.input + inputs_, [&fits](const ElementInput& input) {
      return input.column_step == 0 || fits(input.data, input.type, input.row_stride);
    });
  }

  const Launcher launcher_;
  const ElementwiseParameter parameter_;
  const size_t inputs_;
  const char* const name_;
  const bool random_words_;
  const Writes writes_;
  const std::vector<Broadcast> broadcasts_;
};

// Returns the shortest text that parses to the same number.
std::string Exactly(double number) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::string(text.data(), end) : "0";
}

// Returns the program for a single op, such as "Add i0 i1".
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

Prepared PrepareRequest(const Launcher& launcher, const KernelRequest& request,
                        const std::string& program, Writes writes = Writes::kValue) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, request.inputs.size(), 1));
  RETURN_IF_ERROR(FloatTypeOf(request).status());
  return PrepareProgram(launcher, request.inputs, request.outputs[0], program, writes);
}

KernelEntry EntryOf(const Launcher& launcher, const NamedOp& op) {
  const int inputs = op.op == ElementOp::kClip ? 1 : op.operands;
  return {[launcher, op, inputs](const KernelRequest& request) -> Prepared {
            RETURN_IF_ERROR(cpu::ExpectOperands(request, static_cast<size_t>(inputs), 1));
            if (op.op == ElementOp::kClip) RETURN_IF_ERROR(CheckBounds(request.attributes));
            return PrepareRequest(launcher, request, ProgramOf(op, request.attributes));
          },
          InPlaceInputs(inputs)};
}

// Prepares everything except the random words.
StatusOr<ElementwiseLaunch> PlanElements(const std::vector<Operand>& inputs, const Operand& out,
                                         const std::string& program, Writes writes) {
  RETURN_IF_ERROR(CheckCount(out));
  if (inputs.size() > kElementInputs)
    return Unimplemented("a program has more than ", kElementInputs, " inputs");
  ElementwiseLaunch launch{.inputs = inputs.size(), .writes = writes};
  ElementwiseParameter& parameter = launch.parameter;
  ASSIGN_OR_RETURN(parameter.out_type, FloatTypeOf(out.dtype));
  parameter.count = static_cast<uint32_t>(out.shape.num_elements());
  parameter.cols = static_cast<uint32_t>(out.cols());
  parameter.out_stride = out.row_stride;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Operand input = inputs[i];
    if (!HasElementLayout(input, out)) {
      const Operand whole = Operand::Dense(input.dtype, out.shape);
      ASSIGN_OR_RETURN(const BlockMove move, BroadcastMove(input, whole));
      launch.broadcasts.push_back({i, move});
      input = whole;
    }
    ASSIGN_OR_RETURN(parameter.input[i], LayoutOf(input, out));
  }
  JoinRows(parameter, inputs.size());
  ASSIGN_OR_RETURN(launch.needs, WriteProgram(program, inputs.size(), parameter));
  return launch;
}

// Prepares FusedElementwise. The operands may have different types. If the program contains
// Dropout, the last two inputs are the step and the seed.
Prepared PrepareElementProgram(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, request.inputs.size(), 1));
  std::vector<Operand> inputs = request.inputs;
  const bool random = request.attributes.Get("random", false);
  if (random) {
    if (inputs.size() < 2) return InvalidArgument("expected a step and a seed");
    for (size_t i = inputs.size() - 2; i < inputs.size(); ++i)
      RETURN_IF_ERROR(cpu::ExpectInt64Scalar(inputs[i]));
    inputs.resize(inputs.size() - 2);
  }
  ASSIGN_OR_RETURN(
      ElementwiseLaunch launch,
      PlanElements(inputs, request.outputs[0], request.attributes.Get<std::string>("program", ""),
                   Writes::kValue));
  if (random != launch.needs.random_words)
    return InvalidArgument("the attribute random is ", random ? "set" : "absent",
                           ", but the program ", random ? "drops no" : "drops", " elements");
  launch.parameter.words.replica =
      static_cast<uint16_t>(request.attributes.Get<int64_t>("replica", 0));
  return std::make_unique<ElementwiseKernel>(launcher, std::move(launch));
}

}  // namespace

bool HasElementLayout(const Operand& input, const Operand& out) {
  return LayoutOf(input, out).ok();
}

Prepared PrepareProgram(const Launcher& launcher, const std::vector<Operand>& inputs,
                        const Operand& out, const std::string& program, Writes writes) {
  ASSIGN_OR_RETURN(ElementwiseLaunch launch, PlanElements(inputs, out, program, writes));
  if (launch.needs.random_words) return InvalidArgument("the program drops elements");
  return std::make_unique<ElementwiseKernel>(launcher, std::move(launch));
}

KernelTable::Entries ElementwiseKernels(const Launcher& launcher) {
  KernelTable::Entries entries;
  for (const NamedOp& op : kElementOps)
    if (op.op != ElementOp::kCopy && op.op != ElementOp::kDropout)
      entries[op.name] = EntryOf(launcher, op);
  const auto sum = [&launcher](Writes writes) {
    return [launcher, writes](const KernelRequest& request) -> Prepared {
      RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 1));
      if (writes == Writes::kVariable && cpu::AddsToDoubles(request))
        return PrepareAddToDoubles(launcher, request);
      return PrepareRequest(launcher, request, "Add i0 i1", writes);
    };
  };
  entries["BiasAdd"] = {sum(Writes::kValue), InPlaceInputs(1)};
  entries["AssignAdd"] = {sum(Writes::kVariable), {{0, 0, InPlace::kAlways}}};
  entries["FusedElementwise"] = {
      [launcher](const KernelRequest& request) { return PrepareElementProgram(launcher, request); },
      InPlaceInputs(4)};
  return entries;
}

}  // namespace tfjob::kernels::cuda
