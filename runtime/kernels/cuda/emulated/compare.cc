#include "runtime/kernels/cuda/emulated/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/kernels/cuda/checks/compared_op.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/kernels/cuda/emulator/memory.h"
#include "runtime/kernels/cuda/emulator/shadow.h"

namespace tfjob::kernels::cuda {
namespace {

// Runs one op on an emulated GPU.
class EmulatedRun {
 public:
  EmulatedRun(const Comparison& comparison, uint64_t seed) : op_(comparison, seed) {}

  Status OnCpu() { return op_.RunOnCpu(); }

  Status OnGpu(const GpuAccess& gpu) {
    ASSIGN_OR_RETURN(const std::vector<void*> outputs, Submit(gpu, nullptr));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto* const actual = static_cast<const std::byte*>(outputs[i]);
      RETURN_IF_ERROR(CheckWritten(i, actual));
      RETURN_IF_ERROR(op_.CheckOutput(i, actual));
    }
    return OkStatus();
  }

  // If the op updates variables, runs it as if another kernel had refused its inputs, and checks
  // that nothing changes.
  Status OnGpuAfterRefusal(const GpuAccess& gpu) {
    if (!UpdatesVariables()) return OkStatus();
    const Refusal refusal{.number = 1, .position = 0, .value = -1};
    auto* const refused =
        reinterpret_cast<Refusal*>(memory_.Allocate(sizeof refusal, "refusal", 0));
    EmulatedMemory::Write(reinterpret_cast<std::byte*>(refused), &refusal, sizeof refusal);
    ASSIGN_OR_RETURN(const std::vector<void*> outputs, Submit(gpu, refused));
    for (size_t i = 0; i < outputs.size(); ++i)
      RETURN_IF_ERROR(op_.CheckUnchanged(i, static_cast<const std::byte*>(outputs[i])));
    return OkStatus();
  }

 private:
  const KernelRequest& request() const { return op_.request(); }

  // Runs the kernel with the inputs, and returns the outputs.
  StatusOr<std::vector<void*>> Submit(const GpuAccess& gpu, Refusal* refusal) {
    const KernelTable table = MakeTable(gpu);
    ASSIGN_OR_RETURN(const auto kernel, table.Prepare(request()));
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < request().inputs.size(); ++i) {
      inputs.push_back(Allocate(request().inputs[i], "input " + std::to_string(i)));
      CopyInput(i, static_cast<std::byte*>(const_cast<void*>(inputs.back())));
    }
    for (size_t i = 0; i < request().outputs.size(); ++i) {
      void* const shared =
          InPlaceOf(table.Find(request().op)->in_place, static_cast<int>(i), inputs, outputs);
      outputs.push_back(shared != nullptr
                            ? shared
                            : Allocate(request().outputs[i], "output " + std::to_string(i)));
    }
    // Programs align workspaces to 64 bytes.
    std::byte* const workspace = memory_.Allocate(kernel->workspace_bytes(), "workspace", 64);
    Stream stream;
    stream.set_refusal(refusal);
    kernel->Run(inputs.data(), outputs.data(), workspace, stream);
    if (const std::vector<std::string> reports = TakeReports(); !reports.empty())
      return Internal(request().ToString(), ": ", reports.size(),
                      " reports, the first: ", reports[0]);
    return outputs;
  }

  // Excludes MatMulAccumulate, which the device's library computes: programs in which a kernel may
  // refuse its inputs do not contain this op.
  bool UpdatesVariables() const {
    return request().op != "MatMulAccumulate" && op_.UpdatedInput(0) >= 0;
  }

  std::byte* Allocate(const Operand& operand, const std::string& name) {
    PhiloxStream& random = op_.random();
    const size_t offset = random.Below(3) == 0 ? SizeOf(operand.dtype) * random.Below(4) : 0;
    return memory_.Allocate(operand.bytes(), name, offset);
  }

  // Copies an input without its padding, so that any read of the padding is reported.
  void CopyInput(size_t i, std::byte* to) {
    ForRows(request().inputs[i], [&](size_t offset, size_t bytes) {
      EmulatedMemory::Write(to + offset, op_.input(i) + offset, bytes);
    });
  }

  // Returns the memory of the input that the output is to share, or null if it is to share none.
  // `used` is the memory of the previous outputs.
  void* InPlaceOf(const std::vector<InPlace>& rules, int output,
                  const std::vector<const void*>& inputs, const std::vector<void*>& used) {
    for (const InPlace& rule : rules) {
      const auto input = static_cast<size_t>(rule.input);
      if (rule.output == output && input < inputs.size() &&
          request().inputs[input] == request().outputs[static_cast<size_t>(output)] &&
          std::ranges::find(used, inputs[input]) == used.end() &&
          (rule.rule == InPlace::kAlways || op_.random().Below(2) == 0))
        return const_cast<void*>(inputs[input]);
    }
    return nullptr;
  }

  Status CheckWritten(size_t i, const std::byte* actual) const {
    Status status;
    ForRows(request().outputs[i], [&](size_t offset, size_t bytes) {
      if (status.ok() && shadow::Enabled() &&
          shadow::FirstUninitialised(reinterpret_cast<uintptr_t>(actual + offset), bytes) >= 0)
        status = Internal(request().ToString(), ": output ", i, " was not written");
    });
    return status;
  }

  ComparedOp op_;
  EmulatedMemory memory_;
};

}  // namespace

void ExpectNoReports(const std::string& what) {
  const std::vector<std::string> reports = TakeReports();
  EXPECT_TRUE(reports.empty()) << what << ": " << reports.size()
                               << " reports, the first: " << (reports.empty() ? "" : reports[0]);
}

std::string FirstReport(const Comparison& comparison, uint64_t seed, const GpuAccess& gpu) {
  TakeReports();
  EmulatedRun run(comparison, seed);
  Status status = run.OnCpu();
  if (status.ok()) status = run.OnGpu(gpu);
  if (status.ok()) status = run.OnGpuAfterRefusal(gpu);
  return std::string(Message(status));
}

void Compare(const Comparison& comparison, uint64_t seed) {
  for (const Comparison& each : WithHalfType(comparison, seed)) {
    EXPECT_EQ(FirstReport(each, seed, EmulatedGpu(seed)), "") << each.op << ", seed " << seed;
  }
}

void CompareAll(const std::vector<Comparison>& comparisons, uint64_t seed) {
  for (const Comparison& comparison : comparisons) Compare(comparison, seed);
}

}  // namespace tfjob::kernels::cuda
