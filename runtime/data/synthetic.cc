#include <algorithm>
#include <cmath>

#include "runtime/base/philox.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/half.h"

namespace tfjob::data {
namespace {

// The maximum number of elements, 16 GiB of float32. A larger size in the training file is probably
// a mistake.
constexpr int64_t kMostSyntheticElements = int64_t{1} << 32;

template <typename T>
void DrawReals(PhiloxStream& random, double low, double high, std::span<T> values) {
  // Draw 32 random bits per element, which suffice for float32 and take half as long as 64 bits.
  // Elements of float64 are drawn in the same way, so they have at most 2^32 different values.
  for (T& value : values)
    value = static_cast<T>(low + (high - low) * (static_cast<double>(random.Next()) * 0x1p-32));
}

template <typename T>
void DrawIntegers(PhiloxStream& random, double low, double high, std::span<T> values) {
  const auto first = static_cast<int64_t>(std::ceil(low));
  const auto count = static_cast<uint32_t>(static_cast<int64_t>(std::floor(high)) - first + 1);
  for (T& value : values) value = static_cast<T>(first + random.Below(count));
}

void Draw(PhiloxStream& random, double low, double high, Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return DrawReals(random, low, high, tensor.data<float>());
    case DType::kFloat64:
      return DrawReals(random, low, high, tensor.data<double>());
    case DType::kInt32:
      return DrawIntegers(random, low, high, tensor.data<int32_t>());
    case DType::kInt64:
      return DrawIntegers(random, low, high, tensor.data<int64_t>());
    case DType::kUInt8:
      return DrawIntegers(random, low, high, tensor.data<uint8_t>());
    case DType::kBool:
      return DrawIntegers(random, low, high, tensor.data<bool>());
    case DType::kBFloat16:  // CheckRange refuses these
    case DType::kFloat16:
      return;
  }
}

// Returns the smallest and the largest integer of a type that DrawIntegers supports.
std::pair<double, double> LimitsOf(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (dtype == DType::kUInt8) return {0, 255};
  return {-0x1p31, 0x1p31 - 1};
}

Status CheckRange(const SyntheticOptions::Source& source) {
  if (source.dtype == DType::kFloat32 || source.dtype == DType::kFloat64) return OkStatus();
  if (IsHalf(source.dtype)) {
    return InvalidArgument("synthetic data: expected a type that inputs have for ", source.name,
                           ", got ", Name(source.dtype));
  }
  const auto [least, most] = LimitsOf(source.dtype);
  const double low = std::ceil(source.low), high = std::floor(source.high);
  if (low >= least && high <= most && low <= high && high - low < 0x1p32 - 1) return OkStatus();
  return InvalidArgument("synthetic data: expected a range of ", Name(source.dtype), " for ",
                         source.name, ", got [", source.low, ", ", source.high, "]");
}

}  // namespace

StatusOr<Dataset> MakeSynthetic(const SyntheticOptions& options) {
  Dataset dataset;
  for (const SyntheticOptions::Source& source : options.arrays) {
    RETURN_IF_ERROR(CheckRange(source));
    std::vector<int64_t> dims = source.shape.dims();
    dims.insert(dims.begin(), options.examples);
    Shape shape(std::move(dims));
    const std::optional<int64_t> elements = shape.CheckedElements();
    if (!elements || *elements < 1 || *elements > kMostSyntheticElements) {
      return InvalidArgument("synthetic data: ", source.name, " would have the shape ",
                             shape.ToString(), "; expected from 1 to 2^32 elements");
    }
    Tensor tensor(source.dtype, std::move(shape), Buffer::Contents::kUndefined);
    PhiloxStream random(PhiloxKey(options.seed, StrCat("synthetic data ", source.name)));
    Draw(random, source.low, source.high, tensor);
    dataset.arrays.push_back({source.name, "synthetic data", std::move(tensor)});
  }
  return dataset;
}

}  // namespace tfjob::data
