#include "runtime/kernels/cpu/half.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/kernels/cpu/prepare.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr size_t kScratchAlignment = 64;

// Returns the operand, with float32 in place of a half type.
Operand Widened(Operand operand) {
  if (IsHalf(operand.dtype)) operand.dtype = DType::kFloat32;
  return operand;
}

// Describes an operand of a half type: its index, the offset of its float32 copy in the workspace,
// and the kernel that converts between the two.
struct Converted {
  size_t index = 0;
  size_t offset = 0;
  std::unique_ptr<Kernel> cast;
};

class HalfKernel : public Kernel {
 public:
  HalfKernel(std::unique_ptr<Kernel> kernel, const KernelRequest& request)
      : kernel_(std::move(kernel)),
        inputs_(request.inputs.size()),
        outputs_(request.outputs.size()),
        bytes_(Aligned(kernel_->workspace_bytes())) {}

  // Reserves workspace for each operand of a half type, and prepares the conversion of the operand.
  Status Place(const KernelRequest& request, const KernelEntry& entry,
               const PrepareFunction& cast) {
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      const Operand& half = request.inputs[i];
      if (!IsHalf(half.dtype)) continue;
      ASSIGN_OR_RETURN(auto widen, cast({"Cast", {}, {half}, {Widened(half)}}));
      read_.push_back({i, Take(half), std::move(widen)});
    }
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      const Operand& half = request.outputs[i];
      if (!IsHalf(half.dtype)) continue;
      const std::optional<size_t> shared = InputThatIs(static_cast<int>(i), entry.in_place);
      ASSIGN_OR_RETURN(auto round, cast({"Cast", {}, {Widened(half)}, {half}}));
      written_.push_back({i, shared ? *shared : Take(half), std::move(round)});
    }
    return OkStatus();
  }

  size_t workspace_bytes() const override { return bytes_; }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    std::copy_n(inputs, inputs_.size(), inputs_.begin());
    std::copy_n(outputs, outputs_.size(), outputs_.begin());
    for (const Converted& operand : read_) {
      void* const wide = At(workspace, operand);
      operand.cast->Run(&inputs[operand.index], &wide, nullptr, stream);
      inputs_[operand.index] = wide;
    }
    for (const Converted& operand : written_) outputs_[operand.index] = At(workspace, operand);
    kernel_->Run(inputs_.data(), outputs_.data(), workspace, stream);
    for (const Converted& operand : written_) {
      const void* const wide = At(workspace, operand);
      operand.cast->Run(&wide, &outputs[operand.index], nullptr, stream);
    }
  }

 private:
  static size_t Aligned(size_t bytes) {
    return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }

  static std::byte* At(void* workspace, const Converted& operand) {
    return static_cast<std::byte*>(workspace) + operand.offset;
  }

  // Reserves workspace for a float32 copy of the operand. Returns the offset.
  size_t Take(const Operand& half) {
    const size_t offset = bytes_;
    bytes_ += Aligned(Widened(half).bytes());
    return offset;
  }

  // Returns the workspace offset of the input whose memory the output must use, or nullopt if there
  // is no such input.
  std::optional<size_t> InputThatIs(int output, const std::vector<InPlace>& in_place) const {
    for (const InPlace& rule : in_place) {
      if (rule.rule != InPlace::kAlways || rule.output != output) continue;
      for (const Converted& input : read_) {
        if (input.index == static_cast<size_t>(rule.input)) return input.offset;
      }
    }
    return std::nullopt;
  }

  const std::unique_ptr<Kernel> kernel_;
  std::vector<Converted> read_, written_;
  std::vector<const void*> inputs_;  // arguments of `kernel_`
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

Prepared PrepareHalf(const KernelEntry& entry, const PrepareFunction& cast,
                     const KernelRequest& request) {
  auto own = entry.prepare(request);
  if (!absl::IsUnimplemented(own.status()) || !HasHalf(request)) return own;
  RETURN_IF_ERROR(ExpectOneFloatType(request));
  KernelRequest wide = request;
  for (auto* side : {&wide.inputs, &wide.outputs})
    std::ranges::transform(*side, side->begin(), Widened);
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, entry.prepare(wide));
  auto half = std::make_unique<HalfKernel>(std::move(kernel), request);
  RETURN_IF_ERROR(half->Place(request, entry, cast));
  return half;
}

}  // namespace

KernelTable::Entries WithHalfTypes(KernelTable::Entries entries) {
  const PrepareFunction cast = entries.at("Cast").prepare;
  for (auto& [op, entry] : entries) {
    entry.prepare = [inner = entry, cast](const KernelRequest& request) {
      return PrepareHalf(inner, cast, request);
    };
  }
  return entries;
}

}  // namespace tfjob::kernels::cpu
