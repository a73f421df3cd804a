#include "runtime/selftest/speed_check.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/device/device_runtime.h"
#include "runtime/kernels/stream.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::selftest {
namespace {

using device::Memory;
using kernels::KernelRequest;
using kernels::Operand;

constexpr char kSpeed[] = "speed";
constexpr double kSlowBelow = 0.6;

// Calls run(stream) several times, and returns the mean time in seconds. Does not measure the first
// call, in which the device may still load code.
StatusOr<double> MeasureSeconds(const exec::Device& device, const SpeedOptions& options,
                                const std::function<void(kernels::Stream&)>& run) {
  ASSIGN_OR_RETURN(const auto queue, device.runtime->NewStream());
  kernels::Stream stream(nullptr, *device.runtime, *queue);
  run(stream);
  RETURN_IF_ERROR(device.runtime->Synchronize());
  const Duration begin = options.now();
  for (int i = 0; i < options.repetitions; ++i) run(stream);
  RETURN_IF_ERROR(device.runtime->Synchronize());
  const std::chrono::duration<double> total = options.now() - begin;
  return total.count() / options.repetitions;
}

// Memory for the operands of a kernel. All numbers are 0.
class SpeedOperands {
 public:
  static StatusOr<SpeedOperands> Make(const exec::Device& device, const KernelRequest& request,
                                      size_t workspace_bytes) {
    SpeedOperands operands;
    const auto allocate = [&](size_t bytes) {
      return device.runtime->Allocate(device::MemoryKind::kDevice, bytes, Buffer::Contents::kZero,
                                      "a measurement");
    };
    for (const Operand& input : request.inputs) {
      ASSIGN_OR_RETURN(Memory memory, allocate(input.bytes()));
      operands.inputs_.push_back(memory.get());
      operands.memory_.push_back(std::move(memory));
    }
    const kernels::KernelEntry* const entry = device.kernels->Find(request.op);
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      operands.outputs_.push_back(nullptr);
      for (const kernels::InPlace& rule : entry->in_place)
        if (rule.output == static_cast<int>(i) && rule.rule == kernels::InPlace::kAlways)
          operands.outputs_[i] =
              const_cast<void*>(operands.inputs_[static_cast<size_t>(rule.input)]);
      if (operands.outputs_[i] != nullptr) continue;
      ASSIGN_OR_RETURN(Memory memory, allocate(request.outputs[i].bytes()));
      operands.outputs_[i] = memory.get();
      operands.memory_.push_back(std::move(memory));
    }
    ASSIGN_OR_RETURN(operands.workspace_, allocate(workspace_bytes));
    return operands;
  }

  void Run(kernels::Kernel& kernel, kernels::Stream& stream) const {
    kernel.Run(inputs_.data(), outputs_.data(), workspace_.get(), stream);
  }

 private:
  std::vector<Memory> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  Memory workspace_;
};

StatusOr<double> MeasureKernel(const exec::Device& device, const SpeedOptions& options,
                               const KernelRequest& request) {
  ASSIGN_OR_RETURN(const auto kernel, device.kernels->Prepare(request));
  ASSIGN_OR_RETURN(const SpeedOperands operands,
                   SpeedOperands::Make(device, request, kernel->workspace_bytes()));
  return MeasureSeconds(device, options,
                        [&](kernels::Stream& stream) { operands.Run(*kernel, stream); });
}

// Returns the speed of a copy: the number of bytes that it reads and writes per second.
StatusOr<double> MeasureCopy(const exec::Device& device, const SpeedOptions& options) {
  const size_t bytes = static_cast<size_t>(options.elements) * sizeof(float);
  const auto allocate = [&] {
    return device.runtime->Allocate(device::MemoryKind::kDevice, bytes, Buffer::Contents::kZero,
                                    "a measurement");
  };
  ASSIGN_OR_RETURN(const Memory from, allocate());
  ASSIGN_OR_RETURN(const Memory to, allocate());
  ASSIGN_OR_RETURN(const double seconds,
                   MeasureSeconds(device, options, [&](kernels::Stream& stream) {
                     stream.Copy(to.get(), from.get(), bytes);
                   }));
  return 2 * static_cast<double>(bytes) / seconds;
}

Finding Failed(std::string check, const Status& error) {
  return {kSpeed, std::move(check), Verdict::kWrong, std::string(Message(error))};
}

std::string GigabytesOf(double bytes_per_second) {
  return absl::StrFormat("%.0f GB/s", bytes_per_second / 1e9);
}

Finding MeasureProduct(const exec::Device& device, const SpeedOptions& options, DType dtype) {
  const Operand matrix = Operand::Dense(dtype, Shape({options.side, options.side}));
  const std::string check = StrCat("MatMul ", Name(dtype), " ", options.side);
  const StatusOr<double> seconds =
      MeasureKernel(device, options, {"MatMul", {}, {matrix, matrix}, {matrix}});
  if (!seconds.ok()) return Failed(check, seconds.status());
  const auto side = static_cast<double>(options.side);
  return {kSpeed, check, Verdict::kRight,
          absl::StrFormat("%.1f TFLOP/s", 2 * side * side * side / *seconds / 1e12)};
}

// Returns the request for an op on matrices.
SpeedCase OnMatrices(const char* op, Attributes attributes, const std::vector<Shape>& inputs,
                     const Shape& output, DType dtype = DType::kFloat32) {
  KernelRequest request{op, std::move(attributes), {}, {Operand::Dense(dtype, output)}};
  for (const Shape& input : inputs) request.inputs.push_back(Operand::Dense(dtype, input));
  return {std::move(request)};
}

SpeedCase UpdateOf(const optimizer::Optimizer& optimizer, const Shape& shape) {
  const Operand variable = Operand::Dense(DType::kFloat32, shape);
  KernelRequest request{"ApplyOptimizer",
                        ToAttributes(optimizer),
                        {Operand::Dense(DType::kInt64, Shape({})), variable, variable},
                        {variable}};
  for (int slot = 0; slot < SlotCount(optimizer); ++slot) {
    request.inputs.push_back(variable);
    request.outputs.push_back(variable);
  }
  return {std::move(request)};
}

}  // namespace

int64_t SpeedCase::bytes() const {
  int64_t bytes = 0;
  for (const auto* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands) bytes += static_cast<int64_t>(operand.bytes());
  return bytes;
}

std::vector<SpeedCase> SpeedCases(int64_t elements) {
  constexpr int64_t kCols = 1024;
  const int64_t rows = elements / kCols;
  const Shape matrix({rows, kCols}), row({kCols}), transposed({kCols, rows});
  const Attributes last = {{"axes", std::vector<int64_t>{1}}};
  const Attributes chain = {{"program", std::string("Mul i0 0.5; Add t0 i1; Relu t1")}};
  return {OnMatrices("Exp", {}, {matrix}, matrix),
          OnMatrices("Add", {}, {matrix, matrix}, matrix),
          OnMatrices("Add", {}, {matrix, matrix}, matrix, DType::kBFloat16),
          OnMatrices("FusedElementwise", chain, {matrix, row}, matrix),
          OnMatrices("Transpose", {}, {matrix}, transposed),
          OnMatrices("BiasAddGrad", {}, {matrix}, row),
          OnMatrices("Sum", last, {matrix}, Shape({rows})),
          OnMatrices("Softmax", {}, {matrix}, matrix),
          OnMatrices("SoftmaxGrad", {}, {matrix, matrix}, matrix),
          UpdateOf(optimizer::Optimizer::Default(optimizer::Kind::kSgd), Shape({elements})),
          UpdateOf(optimizer::Optimizer::Default(optimizer::Kind::kAdam), Shape({elements}))};
}

Finding JudgeBandwidth(const SpeedCase& speed_case, double bytes_per_second, double roof) {
  const KernelRequest& request = speed_case.request;
  const double part = bytes_per_second / roof;
  return {kSpeed, StrCat(request.op, " ", request.inputs.back().ToString()),
          part < kSlowBelow ? Verdict::kSlow : Verdict::kRight,
          absl::StrFormat("%s, %.0f %% of a copy", GigabytesOf(bytes_per_second), 100 * part)};
}

std::vector<Finding> CheckSpeed(const exec::Device& device, const SpeedOptions& options) {
  const StatusOr<double> roof = MeasureCopy(device, options);
  if (!roof.ok()) return {Failed("copy", roof.status())};
  std::vector<Finding> findings = {{kSpeed, "copy", Verdict::kRight, GigabytesOf(*roof)}};
  for (const SpeedCase& speed_case : SpeedCases(options.elements)) {
    const StatusOr<double> seconds = MeasureKernel(device, options, speed_case.request);
    findings.push_back(
        seconds.ok()
            ? JudgeBandwidth(speed_case, static_cast<double>(speed_case.bytes()) / *seconds, *roof)
            : Failed(speed_case.request.op, seconds.status()));
  }
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
    findings.push_back(MeasureProduct(device, options, dtype));
  return findings;
}

}  // namespace tfjob::selftest
