#include "runtime/kernels/cpu/half.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/stream.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr size_t kScratchAlignment = 64;

// Converts all elements of an operand, including the padding between its rows.
void WidenAll(const Operand& half, const void* from, float* to, Stream& stream) {
  const int64_t count = half.rows() * half.row_stride;
  stream.ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    const auto size = static_cast<size_t>(end - begin);
    if (half.dtype == DType::kBFloat16)
      return ToFloat(static_cast<const BFloat16*>(from) + begin, to + begin, size);
    ToFloat(static_cast<const Float16*>(from) + begin, to + begin, size);
  });
}

void RoundAll(const Operand& half, const float* from, void* to, Stream& stream) {
  const int64_t count = half.rows() * half.row_stride;
  stream.ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    const auto size = static_cast<size_t>(end - begin);
    if (half.dtype == DType::kBFloat16)
      return FromFloat(from + begin, static_cast<BFloat16*>(to) + begin, size);
    FromFloat(from + begin, static_cast<Float16*>(to) + begin, size);
  });
}

// An operand of a half type, and its place in the workspace as float32.
struct Converted {
  size_t index = 0;
  Operand half;
  size_t offset = 0;
};

class HalfKernel : public Kernel {
 public:
  HalfKernel(std::unique_ptr<Kernel> kernel, const KernelRequest& request,
             const std::vector<InPlace>& in_place)
      : kernel_(std::move(kernel)),
        inputs_(request.inputs.size()),
        outputs_(request.outputs.size()) {
    bytes_ = Aligned(kernel_->workspace_bytes());
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      if (IsHalf(request.inputs[i].dtype)) Place(i, request.inputs[i], std::nullopt, read_);
    }
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      if (!IsHalf(request.outputs[i].dtype)) continue;
      Place(i, request.outputs[i], InputThatIs(static_cast<int>(i), in_place), written_);
    }
  }

  size_t workspace_bytes() const override { return bytes_; }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    std::copy_n(inputs, inputs_.size(), inputs_.begin());
    std::copy_n(outputs, outputs_.size(), outputs_.begin());
    for (const Converted& operand : read_) {
      float* const wide = At(workspace, operand);
      WidenAll(operand.half, inputs[operand.index], wide, stream);
      inputs_[operand.index] = wide;
    }
    for (const Converted& operand : written_) outputs_[operand.index] = At(workspace, operand);
    kernel_->Run(inputs_.data(), outputs_.data(), workspace, stream);
    for (const Converted& operand : written_)
      RoundAll(operand.half, At(workspace, operand), outputs[operand.index], stream);
  }

 private:
  static size_t Aligned(size_t bytes) {
    return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }

  static float* At(void* workspace, const Converted& operand) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(workspace) + operand.offset);
  }

  // Returns the offset of the input whose memory the output must use, if there is one.
  std::optional<size_t> InputThatIs(int output, const std::vector<InPlace>& in_place) const {
    for (const InPlace& rule : in_place) {
      if (rule.rule != InPlace::kAlways || rule.output != output) continue;
      for (const Converted& input : read_) {
        if (input.index == static_cast<size_t>(rule.input)) return input.offset;
      }
    }
    return std::nullopt;
  }

  void Place(size_t index, const Operand& half, std::optional<size_t> offset,
             std::vector<Converted>& operands) {
    operands.push_back({index, half, offset.value_or(bytes_)});
    if (!offset) bytes_ += Aligned(2 * half.bytes());
  }

  const std::unique_ptr<Kernel> kernel_;
  std::vector<Converted> read_, written_;
  std::vector<const void*> inputs_;  // of `kernel_`
  std::vector<void*> outputs_;
  size_t bytes_ = 0;
};

bool HasHalf(const KernelRequest& request) {
  const auto is_half = [](const Operand& operand) { return IsHalf(operand.dtype); };
  return std::ranges::any_of(request.inputs, is_half) ||
         std::ranges::any_of(request.outputs, is_half);
}

// Returns InvalidArgument unless all float operands have the same type.
Status ExpectOneFloatType(const KernelRequest& request) {
  std::optional<DType> found;
  for (const auto* side : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *side) {
      const DType dtype = operand.dtype;
      if (!IsHalf(dtype) && dtype != DType::kFloat32 && dtype != DType::kFloat64) continue;
      if (found && *found != dtype) {
        return InvalidArgument("the operands are ", Name(*found), " and ", Name(dtype),
                               ": they must have one float type");
      }
      found = dtype;
    }
  }
  return OkStatus();
}

Prepared PrepareHalf(const KernelEntry& entry, const KernelRequest& request) {
  auto own = entry.prepare(request);
  if (!absl::IsUnimplemented(own.status()) || !HasHalf(request)) return own;
  RETURN_IF_ERROR(ExpectOneFloatType(request));
  KernelRequest wide = request;
  for (auto* side : {&wide.inputs, &wide.outputs}) {
    for (Operand& operand : *side) {
      if (IsHalf(operand.dtype)) operand.dtype = DType::kFloat32;
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, entry.prepare(wide));
  return Make<HalfKernel>(std::move(kernel), request, entry.in_place);
}

}  // namespace

KernelTable::Entries WithHalfTypes(KernelTable::Entries entries) {
  for (auto& [op, entry] : entries) {
    entry.prepare = [inner = entry](const KernelRequest& request) {
      return PrepareHalf(inner, request);
    };
  }
  return entries;
}

}  // namespace tfjob::kernels::cpu
