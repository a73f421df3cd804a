#include "runtime/selftest/kernel_check.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/device/device_runtime.h"
#include "runtime/kernels/cuda/checks/compared_op.h"
#include "runtime/kernels/stream.h"
#include "runtime/tensor/half.h"

namespace tfjob::selftest {
namespace {

using device::MemoryKind;
using kernels::Operand;
using kernels::cuda::ComparedOp;
using kernels::cuda::Comparison;

// The bytes before and after each operand, which no kernel may change.
constexpr size_t kGuardBytes = 1024;
constexpr std::byte kGuard{0xa5};
// Fill outputs and workspaces before a run. All floats are then NaN, and no integer is -1, which
// some ops write.
constexpr std::byte kUnwritten{0xff}, kUnwrittenInteger{0x5a};

bool IsInteger(DType dtype) {
  return dtype != DType::kFloat32 && dtype != DType::kFloat64 && !IsHalf(dtype);
}

// A range of device memory: its size, the bytes that fill it before a run, and its distance from an
// aligned address.
struct Range {
  size_t bytes = 0;
  std::byte unwritten = kUnwritten;
  size_t shift = 0;
};

// Device memory for one operand, between two guards.
class Guarded {
 public:
  static StatusOr<Guarded> Make(device::DeviceRuntime& runtime, const Range& range,
                                const std::string& name) {
    Guarded guarded(runtime, range);
    ASSIGN_OR_RETURN(guarded.memory_, runtime.Allocate(MemoryKind::kDevice, guarded.image_.size(),
                                                       Buffer::Contents::kUndefined, name));
    return guarded;
  }

  void* address() const { return static_cast<std::byte*>(memory_.get()) + before_; }

  // Writes the guards, and `contents` between them. If `contents` is null, writes
  // Range::unwritten between the guards.
  Status Fill(const std::byte* contents) {
    std::ranges::fill(image_, kGuard);
    if (contents == nullptr) {
      std::fill_n(content(), range_.bytes, range_.unwritten);
    } else {
      std::copy_n(contents, range_.bytes, content());
    }
    return runtime_->Write(memory_.get(), image_.data(), image_.size());
  }

  // Copies the memory to the host, and checks the guards.
  Status Read() {
    RETURN_IF_ERROR(runtime_->Read(image_.data(), memory_.get(), image_.size()));
    const auto intact = [](const std::byte* first, size_t bytes) {
      return std::all_of(first, first + bytes, [](std::byte b) { return b == kGuard; });
    };
    if (!intact(image_.data(), before_)) return Internal("wrote before its first element");
    if (!intact(content() + range_.bytes, kGuardBytes))
      return Internal("wrote after its last element");
    return OkStatus();
  }
  // Returns the operand's contents, as copied by the last Read.
  const std::byte* contents() const { return image_.data() + before_; }

 private:
  Guarded(device::DeviceRuntime& runtime, const Range& range)
      : runtime_(&runtime),
        range_(range),
        before_(kGuardBytes + range.shift),
        image_(before_ + range.bytes + kGuardBytes) {}
  std::byte* content() { return image_.data() + before_; }

  device::DeviceRuntime* runtime_;
  Range range_;
  size_t before_;  // the bytes of the first guard
  std::vector<std::byte> image_;
  device::Memory memory_;
};

// One op with its operands on the device.
class DeviceRun {
 public:
  // If `aligned` is false, the operands start one element after an aligned address.
  DeviceRun(ComparedOp& op, const exec::Device& device, bool aligned)
      : op_(op), device_(device), aligned_(aligned) {}

  Status Prepare() {
    const kernels::KernelRequest& request = op_.request();
    ASSIGN_OR_RETURN(kernel_, device_.kernels->Prepare(request));
    ASSIGN_OR_RETURN(queue_, device_.runtime->NewStream());
    for (size_t i = 0; i < request.inputs.size(); ++i)
      RETURN_IF_ERROR(Allocate(RangeOf(request.inputs[i]), StrCat("input ", i), inputs_));
    for (size_t i = 0; i < request.outputs.size(); ++i)
      RETURN_IF_ERROR(Allocate(RangeOf(request.outputs[i]), StrCat("output ", i), outputs_));
    RETURN_IF_ERROR(
        Allocate({.bytes = sizeof(kernels::Refusal), .unwritten = {}}, "refusal", refusal_));
    return Allocate({.bytes = kernel_->workspace_bytes()}, "workspace", workspace_);
  }

  // Runs the kernel. Checks that it refuses its inputs if and only if the CPU does (`expected`).
  // If it does not, checks the outputs. Checks that the guards are unchanged.
  Status Run(const Status& expected) {
    RETURN_IF_ERROR(Fill());
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const Guarded& input : inputs_) inputs.push_back(input.address());
    for (size_t i = 0; i < outputs_.size(); ++i) outputs.push_back(OutputOf(i).address());
    kernels::Stream stream(nullptr, *device_.runtime, *queue_);
    stream.set_refusal(static_cast<kernels::Refusal*>(refusal_[0].address()));
    kernel_->Run(inputs.data(), outputs.data(), workspace_[0].address(), stream);
    RETURN_IF_ERROR(device_.runtime->Synchronize());
    RETURN_IF_ERROR(CheckGuards("input", inputs_));
    RETURN_IF_ERROR(CheckGuards("output", outputs_));
    RETURN_IF_ERROR(CheckGuards("workspace", workspace_));
    RETURN_IF_ERROR(CheckGuards("refusal", refusal_));
    RETURN_IF_ERROR(CheckRefusal(stream, expected));
    if (!expected.ok()) return OkStatus();
    for (size_t i = 0; i < outputs_.size(); ++i)
      RETURN_IF_ERROR(op_.CheckOutput(i, OutputOf(i).contents()));
    return OkStatus();
  }

  // Returns the bits of all outputs of the last run, without the padding.
  std::vector<std::byte> Bits() {
    std::vector<std::byte> bits;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::byte* const contents = OutputOf(i).contents();
      kernels::cuda::ForRows(op_.request().outputs[i], [&](size_t offset, size_t bytes) {
        bits.insert(bits.end(), contents + offset, contents + offset + bytes);
      });
    }
    return bits;
  }

 private:
  Range RangeOf(const Operand& operand) const {
    return {.bytes = operand.bytes(),
            .unwritten = IsInteger(operand.dtype) ? kUnwrittenInteger : kUnwritten,
            .shift = aligned_ ? 0 : SizeOf(operand.dtype)};
  }

  Status Allocate(const Range& range, const std::string& name, std::vector<Guarded>& into) {
    ASSIGN_OR_RETURN(Guarded guarded, Guarded::Make(*device_.runtime, range, name));
    into.push_back(std::move(guarded));
    return OkStatus();
  }

  Status Fill() {
    for (size_t i = 0; i < inputs_.size(); ++i) RETURN_IF_ERROR(inputs_[i].Fill(op_.input(i)));
    for (auto* const all : {&outputs_, &workspace_, &refusal_})
      for (Guarded& guarded : *all) RETURN_IF_ERROR(guarded.Fill(nullptr));
    return OkStatus();
  }

  Status CheckGuards(const char* what, std::vector<Guarded>& all) {
    for (size_t i = 0; i < all.size(); ++i)
      RETURN_IF_ERROR(
          Annotate(all[i].Read(), StrCat(op_.request().ToString(), ": ", what, " ", i)));
    return OkStatus();
  }

  // Compares the error that the kernel has reported with that of the CPU.
  Status CheckRefusal(kernels::Stream& stream, const Status& expected) const {
    kernels::Refusal refusal;
    std::memcpy(&refusal, refusal_[0].contents(), sizeof refusal);
    stream.Refuse(refusal);
    const Status status = stream.TakeStatus();
    if (status.ok() && refusal.number != 0)
      return Internal(op_.request().ToString(), ": an invalid refusal, number ", refusal.number);
    if (status == expected) return OkStatus();
    return Internal(op_.request().ToString(), ": ", status.ToString(), " instead of ",
                    expected.ToString());
  }

  // Returns the memory of an output. If the op updates an input, this is the memory of that input.
  Guarded& OutputOf(size_t i) {
    const int input = op_.UpdatedInput(i);
    return input < 0 ? outputs_[i] : inputs_[static_cast<size_t>(input)];
  }

  ComparedOp& op_;
  const exec::Device& device_;
  const bool aligned_;
  std::unique_ptr<kernels::Kernel> kernel_;
  std::unique_ptr<device::Stream> queue_;
  std::vector<Guarded> inputs_, outputs_, workspace_, refusal_;
};

}  // namespace

Status CheckKernel(const Comparison& comparison, uint64_t seed, const exec::Device& device) {
  ComparedOp op(comparison, seed);
  const Status expected = op.RunOnCpu();
  // Odd seeds select float16 (WithHalfType), so the parity must not also select the alignment.
  DeviceRun run(op, device, /*aligned=*/seed % 4 < 2);
  RETURN_IF_ERROR(run.Prepare());
  RETURN_IF_ERROR(run.Run(expected));
  const std::vector<std::byte> first = run.Bits();
  RETURN_IF_ERROR(run.Run(expected));
  if (first != run.Bits()) return Internal(op.request().ToString(), ": two runs differ");
  return OkStatus();
}

Finding CheckFamily(const kernels::cuda::CaseFamily& family, uint64_t seeds,
                    const exec::Device& device) {
  int64_t compared = 0, failed = 0;
  Finding finding{.family = family.name, .check = "", .detail = ""};
  for (const auto cases : family.cases) {
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      for (const Comparison& comparison : cases(seed)) {
        for (const Comparison& each : kernels::cuda::WithHalfType(comparison, seed)) {
          ++compared;
          const Status status = CheckKernel(each, seed, device);
          if (status.ok()) continue;
          if (failed++ == 0) finding.detail = StrCat("seed ", seed, ": ", Message(status));
        }
      }
    }
  }
  finding.check = StrCat(compared, " comparisons");
  if (failed > 0) {
    finding.verdict = Verdict::kWrong;
    finding.detail = StrCat(failed, " differ. The first: ", finding.detail);
  }
  return finding;
}

}  // namespace tfjob::selftest
