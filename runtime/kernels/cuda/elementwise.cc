// Implements the host's side of elementwise.cu. A single op is a program with one step.
#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "runtime/kernels/cuda/element_program.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Describes how the kernel reads an input. The input has the output's shape, only its last
// dimension, only its other dimensions, or a single element.
StatusOr<ElementInput> LayoutOf(const Operand& input, const Operand& out) {
  if (input.shape == out.shape) return ElementInput{nullptr, input.row_stride, 1};
  if (input.shape.num_elements() == 1) return ElementInput{nullptr, 0, 0};
  if (input.rows() == 1 && input.cols() == out.cols()) return ElementInput{nullptr, 0, 1};
  if (input.shape.rank() == out.shape.rank()) {
    std::vector<int64_t> dims = out.shape.dims();
    dims.back() = 1;
    if (input.shape == Shape(dims)) return ElementInput{nullptr, input.row_stride, 0};
  }
  return Unimplemented("an input has the shape ", input.shape.ToString(),
                       ": expected that of the output, its last dimension, its other dimensions "
                       "or one element");
}

// If every operand stores all elements one after the other, or has a single element, treats the
// output as a single row.
void JoinRows(ElementwiseParameter& p, size_t inputs) {
  const auto one_row = [&p](const ElementInput& input) {
    return input.column_step == 1 ? input.row_stride == p.cols : input.row_stride == 0;
  };
  if (p.out_stride != p.cols || !std::all_of(p.input, p.input + inputs, one_row)) return;
  p.cols = p.count;
  p.out_stride = p.count;
}

class ElementwiseKernel final : public Kernel {
 public:
  ElementwiseKernel(Launcher launcher, const ElementwiseParameter& parameter, size_t inputs,
                    bool slots)
      : launcher_(std::move(launcher)),
        parameter_(parameter),
        inputs_(inputs),
        name_(slots ? "ElementwiseWithSlots" : "Elementwise") {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    ElementwiseParameter p = parameter_;
    p.out = static_cast<float*>(outputs[0]);
    for (size_t i = 0; i < inputs_; ++i) p.input[i].data = static_cast<const float*>(inputs[i]);
    p.vectors = HasVectors(p) ? 1 : 0;
    Submit(launcher_, name_, {Blocks(p.count, kElementsPerBlock)}, {kElementThreads}, p, stream);
  }

 private:
  // Returns whether the kernel can read and write four consecutive elements at once.
  bool HasVectors(const ElementwiseParameter& p) const {
    const bool one_row = p.count == p.cols;
    const auto fits = [one_row](const void* data, int64_t row_stride) {
      return reinterpret_cast<uintptr_t>(data) % 16 == 0 && (one_row || row_stride % 4 == 0);
    };
    if (!one_row && p.cols % 4 != 0) return false;
    if (!fits(p.out, p.out_stride)) return false;
    return std::all_of(p.input, p.input + inputs_, [&fits](const ElementInput& input) {
      return input.column_step == 0 || fits(input.data, input.row_stride);
    });
  }

  const Launcher launcher_;
  const ElementwiseParameter parameter_;
  const size_t inputs_;
  const char* const name_;
};

// Returns the shortest text that parses to the same number.
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

Prepared PrepareRequest(const Launcher& launcher, const KernelRequest& request,
                        const std::string& program) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, request.inputs.size(), 1));
  return PrepareProgram(launcher, request.inputs, request.outputs[0], program);
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

}  // namespace

Prepared PrepareProgram(const Launcher& launcher, const std::vector<Operand>& inputs,
                        const Operand& out, const std::string& program) {
  RETURN_IF_ERROR(ExpectFloat32({"", {}, inputs, {out}}));
  RETURN_IF_ERROR(CheckCount(out));
  if (inputs.size() > kElementInputs)
    return Unimplemented("a program has more than ", kElementInputs, " inputs");
  ElementwiseParameter parameter{};
  parameter.count = static_cast<uint32_t>(out.shape.num_elements());
  parameter.cols = static_cast<uint32_t>(out.cols());
  parameter.out_stride = out.row_stride;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSIGN_OR_RETURN(parameter.input[i], LayoutOf(inputs[i], out));
  }
  JoinRows(parameter, inputs.size());
  ASSIGN_OR_RETURN(const bool slots, WriteProgram(program, inputs.size(), parameter));
  return std::make_unique<ElementwiseKernel>(launcher, parameter, inputs.size(), slots);
}

KernelTable::Entries ElementwiseKernels(const Launcher& launcher) {
  KernelTable::Entries entries;
  for (const NamedOp& op : kElementOps)
    if (op.op != ElementOp::kCopy) entries[op.name] = EntryOf(launcher, op);
  const auto program = [&launcher](size_t inputs, const char* text) {
    return [launcher, inputs, text](const KernelRequest& request) -> Prepared {
      RETURN_IF_ERROR(cpu::ExpectOperands(request, inputs, 1));
      return PrepareRequest(launcher, request, text);
    };
  };
  entries["BiasAdd"] = {program(2, "Add i0 i1"), InPlaceInputs(1)};
  entries["AssignAdd"] = {program(2, "Add i0 i1"), {{0, 0, InPlace::kAlways}}};
  entries["BroadcastTo"] = {program(1, "Copy i0"), {}};
  entries["FusedElementwise"] = {[launcher](const KernelRequest& request) {
                                   return PrepareRequest(
                                       launcher, request,
                                       request.attributes.Get<std::string>("program", ""));
                                 },
                                 InPlaceInputs(4)};
  return entries;
}

}  // namespace tfjob::kernels::cuda
