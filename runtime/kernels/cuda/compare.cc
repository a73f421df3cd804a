#include "runtime/kernels/cuda/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/kernels/cuda/emulator/memory.h"
#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/kernels/flush_denormals.h"

namespace tfjob::kernels::cuda {
namespace {

// Calls body(offset in bytes, bytes) for each row.
template <typename Body>
void ForRows(const Operand& operand, const Body& body) {
  const size_t size = SizeOf(operand.dtype);
  const size_t bytes = size * static_cast<size_t>(operand.cols());
  if (bytes == 0) return;
  for (size_t row = 0; row < static_cast<size_t>(operand.rows()); ++row)
    body(row * size * static_cast<size_t>(operand.row_stride), bytes);
}

template <typename T>
T ValueOf(PhiloxStream& random, double low, double high) {
  return static_cast<T>(low + (high - low) * random.Uniform());
}

// Returns `value` or, at random, 0, an infinity or NaN: many functions change at 0, and must handle
// the others.
double SpecialFloat(const RandomOperand& operand, PhiloxStream& random, double value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (random.Below(32)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return operand.special ? kInfinity : value;
    case 3:
      return operand.special ? -kInfinity : value;
    case 4:
      return operand.special ? std::numeric_limits<double>::quiet_NaN() : value;
    default:
      return value;
  }
}

void FillElement(std::byte* to, const RandomOperand& operand, PhiloxStream& random) {
  const auto store = [&](auto value) {
    using T = decltype(value);
    if constexpr (std::is_floating_point_v<T>)
      value = static_cast<T>(SpecialFloat(operand, random, static_cast<double>(value)));
    std::memcpy(to, &value, sizeof value);
  };
  const double low = operand.low, high = operand.high;
  switch (operand.dtype) {
    case DType::kFloat32:
      return store(ValueOf<float>(random, low, high));
    case DType::kFloat64:
      return store(ValueOf<double>(random, low, high));
    case DType::kInt32:
      return store(ValueOf<int32_t>(random, low, high));
    case DType::kInt64:
      return store(ValueOf<int64_t>(random, low, high));
    case DType::kUInt8:
      return store(ValueOf<uint8_t>(random, low, high));
    default:
      return store(static_cast<uint8_t>(random.Below(2)));  // bool
  }
}

double ElementAt(const std::byte* from, DType dtype) {
  const auto load = [from](auto value) {
    std::memcpy(&value, from, sizeof value);
    return static_cast<double>(value);
  };
  switch (dtype) {
    case DType::kFloat32:
      return load(float{});
    case DType::kFloat64:
      return load(double{});
    case DType::kInt32:
      return load(int32_t{});
    case DType::kInt64:
      return load(int64_t{});
    default:
      return load(uint8_t{});
  }
}

// One run of a comparison.
class ComparedRun {
 public:
  ComparedRun(const Comparison& comparison, uint64_t seed)
      : comparison_(comparison), random_(PhiloxKey(seed, comparison.op)) {
    request_.op = comparison.op;
    request_.attributes = comparison.attributes;
    for (const RandomOperand& input : comparison.inputs) request_.inputs.push_back(Layout(input));
    for (const RandomOperand& output : comparison.outputs)
      request_.outputs.push_back(Layout(output));
  }

  void OnCpu() {
    FillInputs();
    auto kernel = CpuKernels().Prepare(request_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const auto& value : inputs_) inputs.push_back(value->data());
    for (const Operand& operand : request_.outputs) {
      expected_.push_back(std::make_unique<Buffer>(operand.bytes() + 64));
      outputs.push_back(expected_.back()->data());
    }
    const Buffer workspace((*kernel)->workspace_bytes() + 64);
    Stream stream;
    const FlushDenormals flush;
    (*kernel)->Run(inputs.data(), outputs.data(), const_cast<std::byte*>(workspace.data()), stream);
    ASSERT_TRUE(stream.ok()) << stream.TakeStatus();
  }

  void OnEmulator(uint64_t seed) {
    const KernelTable table = MakeTable(EmulatorLauncher(seed));
    auto kernel = table.Prepare(request_);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      inputs.push_back(Allocate(request_.inputs[i], "input " + std::to_string(i)));
      CopyInput(i, static_cast<std::byte*>(const_cast<void*>(inputs.back())));
    }
    for (size_t i = 0; i < request_.outputs.size(); ++i) {
      void* const shared =
          InPlaceOf(table.Find(request_.op)->in_place, static_cast<int>(i), inputs);
      outputs.push_back(shared != nullptr
                            ? shared
                            : Allocate(request_.outputs[i], "output " + std::to_string(i)));
    }
    std::byte* const workspace = memory_.Allocate((*kernel)->workspace_bytes(), "workspace");
    Stream stream;
    (*kernel)->Run(inputs.data(), outputs.data(), workspace, stream);
    ExpectNoReports(request_.ToString());
    for (size_t i = 0; i < outputs.size(); ++i)
      ExpectOutput(i, static_cast<const std::byte*>(outputs[i]));
  }

 private:
  Operand Layout(const RandomOperand& operand) {
    Operand layout = Operand::Dense(operand.dtype, operand.shape);
    if (operand.shape.rank() >= 2 && random_.Below(2) == 0) layout.row_stride += random_.Below(6);
    return layout;
  }

  void FillInputs() {
    for (size_t i = 0; i < request_.inputs.size(); ++i) {
      const Operand& operand = request_.inputs[i];
      inputs_.push_back(std::make_unique<Buffer>(operand.bytes() + 64));
      std::memset(inputs_[i]->data(), 0xff, inputs_[i]->size());
      ForRows(operand, [&](size_t offset, size_t bytes) {
        for (size_t at = 0; at < bytes; at += SizeOf(operand.dtype))
          FillElement(inputs_[i]->data() + offset + at, comparison_.inputs[i], random_);
      });
    }
  }

  std::byte* Allocate(const Operand& operand, const std::string& name) {
    const size_t offset = random_.Below(3) == 0 ? SizeOf(operand.dtype) * random_.Below(4) : 0;
    return memory_.Allocate(operand.bytes(), name, offset);
  }

  // The padding is not copied, so that a read of the padding is reported.
  void CopyInput(size_t i, std::byte* to) {
    ForRows(request_.inputs[i], [&](size_t offset, size_t bytes) {
      EmulatedMemory::Write(to + offset, inputs_[i]->data() + offset, bytes);
    });
  }

  // Returns the memory of an input that the output may use, or null.
  void* InPlaceOf(const std::vector<InPlace>& rules, int output,
                  const std::vector<const void*>& inputs) {
    for (const InPlace& rule : rules) {
      const auto input = static_cast<size_t>(rule.input);
      if (rule.output == output && input < inputs.size() &&
          request_.inputs[input] == request_.outputs[static_cast<size_t>(output)] &&
          random_.Below(2) == 0)
        return const_cast<void*>(inputs[input]);
    }
    return nullptr;
  }

  void ExpectOutput(size_t i, const std::byte* actual) {
    const Operand& operand = request_.outputs[i];
    const size_t size = SizeOf(operand.dtype);
    ForRows(operand, [&](size_t offset, size_t bytes) {
      if (shadow::Enabled()) {
        ASSERT_EQ(shadow::FirstUninitialised(reinterpret_cast<uintptr_t>(actual + offset), bytes),
                  -1)
            << request_.ToString() << ": output " << i << " was not written";
      }
      for (size_t at = offset; at < offset + bytes; at += size) {
        const double a = ElementAt(actual + at, operand.dtype);
        const double e = ElementAt(expected_[i]->data() + at, operand.dtype);
        if (std::isnan(e) || std::isinf(e)) {
          ASSERT_TRUE(std::isnan(e) ? std::isnan(a) : a == e)
              << request_.ToString() << ": output " << i << ": " << a << " for " << e;
          continue;
        }
        ASSERT_LE(std::abs(a - e), comparison_.tolerance * std::max(comparison_.floor, std::abs(e)))
            << request_.ToString() << ": output " << i << " at byte " << at << ": " << a << " for "
            << e;
      }
    });
  }

  const Comparison& comparison_;
  PhiloxStream random_;
  KernelRequest request_;
  EmulatedMemory memory_;
  std::vector<std::unique_ptr<Buffer>> inputs_, expected_;
};

}  // namespace

Launcher EmulatorLauncher(uint64_t seed) {
  return [seed](const LaunchRequest& launch, Stream&) {
    if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0) return;
    const Entry* const entry = FindEntry(launch.kernel);
    ASSERT_NE(entry, nullptr) << launch.kernel;
    ASSERT_EQ(entry->parameter_bytes, launch.bytes) << launch.kernel;
    const FlushDenormals flush;  // as nvcc's -ftz=true
    cuda::Run(*entry, launch.parameter, {launch.grid.x, launch.grid.y, launch.grid.z},
              {launch.block.x, launch.block.y, launch.block.z}, seed);
  };
}

void ExpectNoReports(const std::string& what) {
  const std::vector<std::string> reports = TakeReports();
  EXPECT_TRUE(reports.empty()) << what << ": " << reports.size()
                               << " reports, the first: " << (reports.empty() ? "" : reports[0]);
}

void Compare(const Comparison& comparison, uint64_t seed) {
  SCOPED_TRACE(StrCat(comparison.op, ", seed ", seed));
  TakeReports();
  ComparedRun run(comparison, seed);
  run.OnCpu();
  if (!testing::Test::HasFatalFailure()) run.OnEmulator(seed);
}

}  // namespace tfjob::kernels::cuda
