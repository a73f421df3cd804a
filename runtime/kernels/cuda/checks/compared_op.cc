#include "runtime/kernels/cuda/checks/compared_op.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "runtime/kernels/cuda/checks/reference.h"
#include "runtime/kernels/flush_denormals.h"
#include "runtime/kernels/stream.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {
namespace {

template <typename T>
T ValueOf(PhiloxStream& random, double low, double high) {
  return static_cast<T>(low + (high - low) * random.Uniform());
}

// Returns `value` or, at random, 0, an infinity or NaN: many functions have a special case at 0,
// and all must handle infinities and NaN.
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

template <typename T>
T FloatOf(const RandomOperand& operand, PhiloxStream& random) {
  T value = ValueOf<T>(random, operand.low, operand.high);
  if (operand.whole) value = std::floor(value);
  return static_cast<T>(SpecialFloat(operand, random, static_cast<double>(value)));
}

void FillElement(std::byte* to, const RandomOperand& operand, PhiloxStream& random) {
  const auto store = [to](const auto& value) {
    std::memcpy(to, static_cast<const void*>(&value), sizeof value);
  };
  const double low = operand.low, high = operand.high;
  switch (operand.dtype) {
    case DType::kFloat32:
      return store(FloatOf<float>(operand, random));
    case DType::kFloat64:
      return store(FloatOf<double>(operand, random));
    case DType::kBFloat16:
      return store(BFloat16(FloatOf<float>(operand, random)));
    case DType::kFloat16:
      return store(Float16(FloatOf<float>(operand, random)));
    case DType::kInt32:
      return store(ValueOf<int32_t>(random, low, high));
    case DType::kInt64: {  // a double has too few digits for all large numbers
      const auto least = static_cast<uint64_t>(static_cast<int64_t>(low));
      return store(static_cast<int64_t>(least + ValueOf<uint64_t>(random, 0, high - low)));
    }
    case DType::kUInt8:
      return store(ValueOf<uint8_t>(random, low, high));
    default:
      return store(static_cast<uint8_t>(random.Below(2)));  // bool
  }
}

// Writes a list of ascending numbers (RandomOperand::ascending).
void FillAscending(std::byte* to, const RandomOperand& operand, PhiloxStream& random) {
  std::vector<int64_t> numbers(static_cast<size_t>(operand.shape.num_elements()), -1);
  auto next = numbers.begin();
  const auto bound = static_cast<int64_t>(operand.high);
  for (int64_t number = 0; number < bound && next != numbers.end(); ++number)
    if (random.Below(2) == 0) *next++ = number;
  if (!numbers.empty()) std::memcpy(to, numbers.data(), numbers.size() * sizeof(int64_t));
}

template <typename Half>
Half BitsAt(const std::byte* from) {
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return Half::FromBits(bits);
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
    case DType::kBFloat16:
      return static_cast<double>(static_cast<float>(BitsAt<BFloat16>(from)));
    case DType::kFloat16:
      return static_cast<double>(static_cast<float>(BitsAt<Float16>(from)));
    case DType::kInt32:
      return load(int32_t{});
    case DType::kInt64:
      return load(int64_t{});
    default:
      return load(uint8_t{});
  }
}

// Returns the largest allowed difference of an output's element from the expected one. For a half
// type, neighbouring numbers are allowed, because slightly different numbers may be rounded to
// different neighbours.
double AllowedError(const Comparison& comparison, DType dtype, double expected) {
  const double size = std::abs(expected);
  const double allowed = comparison.tolerance * std::max(comparison.floor, size);
  if (!IsHalf(dtype) || comparison.tolerance == 0) return allowed;
  const bool brain = dtype == DType::kBFloat16;
  return allowed + std::max(size * (brain ? 0x1p-7 : 0x1p-10), brain ? 0x1p-133 : 0x1p-24);
}

}  // namespace

void ForRows(const Operand& operand, const std::function<void(size_t, size_t)>& body) {
  const size_t size = SizeOf(operand.dtype);
  const size_t bytes = size * static_cast<size_t>(operand.cols());
  if (bytes == 0) return;
  for (size_t row = 0; row < static_cast<size_t>(operand.rows()); ++row)
    body(row * size * static_cast<size_t>(operand.row_stride), bytes);
}

ComparedOp::ComparedOp(const Comparison& comparison, uint64_t seed)
    : comparison_(comparison), random_(PhiloxKey(seed, comparison.op)) {
  request_.op = comparison.op;
  request_.attributes = comparison.attributes;
  for (const RandomOperand& input : comparison.inputs) request_.inputs.push_back(Layout(input));
  for (const RandomOperand& output : comparison.outputs) request_.outputs.push_back(Layout(output));
  for (size_t i = 0; i < request_.outputs.size(); ++i) {
    const int input = UpdatedInput(i);
    if (input >= 0) request_.outputs[i] = request_.inputs[static_cast<size_t>(input)];
  }
}

Status ComparedOp::RunOnCpu() {
  FillInputs();
  ASSIGN_OR_RETURN(const auto kernel, ReferenceKernels().Prepare(request_));
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const auto& value : inputs_) inputs.push_back(value->data());
  for (size_t i = 0; i < request_.outputs.size(); ++i) {
    expected_.push_back(std::make_unique<Buffer>(request_.outputs[i].bytes() + 64));
    std::byte* const output = expected_.back()->data();
    outputs.push_back(output);
    const int input = UpdatedInput(i);
    if (input < 0) continue;
    std::memcpy(output, inputs[static_cast<size_t>(input)], request_.outputs[i].bytes());
    inputs[static_cast<size_t>(input)] = output;
  }
  const Buffer workspace(kernel->workspace_bytes() + 64);
  Stream stream;
  const FlushDenormals flush;
  kernel->Run(inputs.data(), outputs.data(), const_cast<std::byte*>(workspace.data()), stream);
  return stream.TakeStatus();
}

Operand ComparedOp::Layout(const RandomOperand& operand) {
  Operand layout = Operand::Dense(operand.dtype, operand.shape);
  if (operand.row_stride != 0) {
    layout.row_stride = operand.row_stride;
  } else if (operand.shape.rank() >= 2 && random_.Below(2) == 0) {
    layout.row_stride += random_.Below(6);
  }
  return layout;
}

void ComparedOp::FillInputs() {
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const Operand& operand = request_.inputs[i];
    inputs_.push_back(std::make_unique<Buffer>(operand.bytes() + 64));
    std::memset(inputs_[i]->data(), 0xff, inputs_[i]->size());
    if (comparison_.inputs[i].ascending) {
      FillAscending(inputs_[i]->data(), comparison_.inputs[i], random_);
      continue;
    }
    int64_t index = 0;
    ForRows(operand, [&](size_t offset, size_t bytes) {
      for (size_t at = 0; at < bytes; at += SizeOf(operand.dtype)) {
        std::byte* const element = inputs_[i]->data() + offset + at;
        FillElement(element, comparison_.inputs[i], random_);
        // All ones are NaN in every float type.
        if (index++ == comparison_.inputs[i].nan_at)
          std::memset(element, 0xff, SizeOf(operand.dtype));
      }
    });
  }
}

int ComparedOp::UpdatedInput(size_t output) const {
  for (const InPlace& rule : ReferenceKernels().Find(request_.op)->in_place)
    if (rule.output == static_cast<int>(output) && rule.rule == InPlace::kAlways) return rule.input;
  return -1;
}

Status ComparedOp::CheckUnchanged(size_t i, const std::byte* actual) const {
  const std::byte* const before = input(static_cast<size_t>(UpdatedInput(i)));
  Status status;
  ForRows(request_.outputs[i], [&](size_t offset, size_t bytes) {
    if (status.ok() && std::memcmp(actual + offset, before + offset, bytes) != 0)
      status = Internal(request_.ToString(), ": output ", i, " changed after a refusal");
  });
  return status;
}

Status ComparedOp::CheckOutput(size_t i, const std::byte* actual) const {
  const Operand& operand = request_.outputs[i];
  const size_t size = SizeOf(operand.dtype);
  Status status;
  const auto fail = [&](const auto&... what) {
    if (status.ok()) status = Internal(request_.ToString(), ": output ", i, what...);
  };
  ForRows(operand, [&](size_t offset, size_t bytes) {
    for (size_t at = offset; at < offset + bytes; at += size) {
      if (operand.dtype == DType::kInt64 &&
          std::memcmp(actual + at, expected_[i]->data() + at, size) != 0)
        return fail(" at byte ", at, ": another int64");
      const double a = ElementAt(actual + at, operand.dtype);
      const double e = ElementAt(expected_[i]->data() + at, operand.dtype);
      const bool special = std::isnan(e) || std::isinf(e);
      const bool equal = special ? (std::isnan(e) ? std::isnan(a) : a == e)
                                 : std::abs(a - e) <= AllowedError(comparison_, operand.dtype, e);
      if (!equal) return fail(" at byte ", at, ": ", a, " for ", e);
    }
  });
  return status;
}

std::vector<Comparison> WithHalfType(const Comparison& comparison, uint64_t seed) {
  std::vector<Comparison> both = {comparison};
  for (const char* op : {"ApplyOptimizer", "Attention", "LayerNormalization"})
    if (comparison.op.starts_with(op)) return both;
  if (comparison.op == "AssignAdd" && comparison.inputs[0].dtype == DType::kFloat64) return both;
  Comparison half = comparison;
  bool floats = false;
  for (auto* side : {&half.inputs, &half.outputs}) {
    for (RandomOperand& operand : *side) {
      if (operand.dtype != DType::kFloat32) continue;
      floats = true;
      operand.dtype = seed % 2 == 0 ? DType::kBFloat16 : DType::kFloat16;
    }
  }
  if (floats) both.push_back(half);
  return both;
}

}  // namespace tfjob::kernels::cuda
