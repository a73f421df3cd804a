#include "runtime/kernels/cpu/check.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/kernels/stream.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cpu {
namespace {

Operand OperandOf(const Tensor& tensor, int64_t padding) {
  Operand operand = Operand::Dense(tensor.dtype(), tensor.shape());
  if (tensor.shape().rank() >= 2) operand.row_stride += padding;
  return operand;
}

// The byte that fills memory before a kernel writes to it. A float that consists of such bytes is
// NaN.
constexpr int kUnwritten = 0xFF;

struct Memory {
  explicit Memory(const Operand& operand) : buffer(operand.bytes() + 64) {
    std::memset(buffer.data(), kUnwritten, buffer.size());
  }
  Memory(const Tensor& tensor, const Operand& operand) : Memory(operand) {
    ForRows(operand, [&](size_t dense, size_t padded, size_t bytes) {
      std::memcpy(buffer.data() + padded, tensor.bytes().data() + dense, bytes);
    });
  }

  Tensor ToTensor(const Operand& operand) const {
    Tensor tensor(operand.dtype, operand.shape);
    ForRows(operand, [&](size_t dense, size_t padded, size_t bytes) {
      std::memcpy(tensor.bytes().data() + dense, buffer.data() + padded, bytes);
    });
    return tensor;
  }

  template <typename Body>
  static void ForRows(const Operand& operand, const Body& body) {
    const size_t size = SizeOf(operand.dtype), bytes = size * static_cast<size_t>(operand.cols());
    if (bytes == 0) return;
    for (size_t row = 0; row < static_cast<size_t>(operand.rows()); ++row) {
      body(row * bytes, row * size * static_cast<size_t>(operand.row_stride), bytes);
    }
  }

  Buffer buffer;
};

void ExpectNear(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (expected.dtype() == DType::kFloat64) tolerance /= 1000;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double a = ValueAt(actual, i), e = ValueAt(expected, i);
    if (std::isnan(e) || std::isinf(e)) {
      ASSERT_TRUE(std::isnan(e) ? std::isnan(a) : a == e) << "element " << i << ": " << a;
      continue;
    }
    ASSERT_LE(std::abs(a - e), tolerance * std::max(1.0, std::abs(e)))
        << "element " << i << ": " << a << " for " << e;
  }
}

// Runs the op once and compares the results. `in_place` is the rule by which an output shares the
// memory of an input. If `in_place` is null, outputs share memory with inputs only if the op
// requires it.
void RunOnce(const Case& test, const KernelRequest& request, const KernelEntry& entry,
             const InPlace* in_place, Stream& stream) {
  auto kernel = CpuKernels().Prepare(request);
  ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
  std::vector<std::unique_ptr<Memory>> in, out;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    in.push_back(std::make_unique<Memory>(test.inputs[i], request.inputs[i]));
    inputs.push_back(in.back()->buffer.data());
  }
  std::vector<const Memory*> results;
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    out.push_back(std::make_unique<Memory>(request.outputs[i]));
    Memory* memory = out.back().get();
    for (const InPlace& rule : entry.in_place) {
      const bool taken = rule.rule == InPlace::kAlways || &rule == in_place;
      if (taken && rule.output == static_cast<int>(i)) {
        memory = in[static_cast<size_t>(rule.input)].get();
      }
    }
    outputs.push_back(memory->buffer.data());
    results.push_back(memory);
  }
  Buffer workspace((*kernel)->workspace_bytes() + 64);
  {
    (*kernel)->Run(inputs.data(), outputs.data(), workspace.data(), stream);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(StrCat("output ", i));
    ExpectNear(results[i]->ToTensor(request.outputs[i]), test.expected[i], test.tolerance);
  }
}

}  // namespace

void Check(const Case& test) {
  const KernelEntry* entry = CpuKernels().Find(test.op);
  ASSERT_NE(entry, nullptr) << test.op;
  ThreadPool pool("check", 2);
  for (int64_t padding : {0, 3}) {
    for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
      KernelRequest request{test.op, test.attributes, {}, {}};
      for (const Tensor& tensor : test.inputs) {
        request.inputs.push_back(OperandOf(tensor, padding));
      }
      for (const Tensor& tensor : test.expected) {
        request.outputs.push_back(OperandOf(tensor, padding));
      }
      SCOPED_TRACE(StrCat(request.ToString(), threads == nullptr ? "" : " on three threads"));
      Stream stream(threads);
      RunOnce(test, request, *entry, nullptr, stream);
      for (const InPlace& rule : entry->in_place) {
        const auto output = static_cast<size_t>(rule.output),
                   input = static_cast<size_t>(rule.input);
        if (rule.rule == InPlace::kAlways || input >= request.inputs.size() ||
            request.outputs[output] != request.inputs[input]) {
          continue;
        }
        SCOPED_TRACE(StrCat("output ", output, " in place of input ", input));
        RunOnce(test, request, *entry, &rule, stream);
      }
    }
  }
}

Status PrepareError(const std::string& op, const Attributes& attributes,
                    std::vector<Operand> inputs, std::vector<Operand> outputs) {
  return CpuKernels().Prepare({op, attributes, std::move(inputs), std::move(outputs)}).status();
}

double ValueAt(const Tensor& tensor, int64_t index) {
  const auto i = static_cast<size_t>(index);
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return tensor.data<float>()[i];
    case DType::kFloat64:
      return tensor.data<double>()[i];
    case DType::kInt32:
      return tensor.data<int32_t>()[i];
    case DType::kInt64:
      return static_cast<double>(tensor.data<int64_t>()[i]);
    case DType::kUInt8:
      return tensor.data<uint8_t>()[i];
    case DType::kBool:
      return tensor.data<bool>()[i];
    case DType::kBFloat16:
      return static_cast<float>(tensor.data<BFloat16>()[i]);
    case DType::kFloat16:
      return static_cast<float>(tensor.data<Float16>()[i]);
  }
  return 0;
}

void SetValue(Tensor& tensor, int64_t index, double value) {
  const auto i = static_cast<size_t>(index);
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.data<float>()[i] = static_cast<float>(value);
      return;
    case DType::kFloat64:
      tensor.data<double>()[i] = value;
      return;
    case DType::kInt32:
      tensor.data<int32_t>()[i] = static_cast<int32_t>(value);
      return;
    case DType::kInt64:
      tensor.data<int64_t>()[i] = static_cast<int64_t>(value);
      return;
    case DType::kUInt8:
      tensor.data<uint8_t>()[i] = static_cast<uint8_t>(value);
      return;
    case DType::kBool:
      tensor.data<bool>()[i] = value != 0;
      return;
    case DType::kBFloat16:
      tensor.data<BFloat16>()[i] = BFloat16(static_cast<float>(value));
      return;
    case DType::kFloat16:
      tensor.data<Float16>()[i] = Float16(static_cast<float>(value));
      return;
  }
}

Tensor Values(DType dtype, const Shape& shape, int seed, double low, double high) {
  Tensor tensor(dtype, shape);
  auto state = static_cast<uint32_t>(seed) * 2654435761u + 12345;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    SetValue(tensor, i, low + (high - low) * (state >> 8) / 16777216.0);
  }
  return tensor;
}

Tensor Elementwise(DType dtype, const std::vector<Tensor>& inputs,
                   const std::function<double(const std::vector<double>&)>& f) {
  Tensor result(dtype, inputs[0].shape());
  std::vector<double> values(inputs.size());
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) values[k] = ValueAt(inputs[k], i);
    SetValue(result, i, f(values));
  }
  return result;
}

}  // namespace tfjob::kernels::cpu
