#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {

Shape DrawShape(PhiloxStream& random) {
  const int64_t rows = Draw(random, {1, 2, 5, 17, 31}),
                cols = Draw(random, {1, 3, 31, 32, 33, 257});
  switch (random.Below(6)) {
    case 0:
      return Shape({});
    case 1:
      return Shape({0, 3});
    case 2:
      return Shape({Draw(random, {1, 255, 256, 257, 5000})});
    case 3:
      return Shape({3, rows, cols});
    default:
      return Shape({rows, cols});
  }
}

Shape DrawMatrix(PhiloxStream& random) {
  return Shape({Draw(random, {1, 2, 5, 17, 31}), Draw(random, {1, 3, 31, 32, 33, 127, 129, 1000})});
}

std::vector<int64_t> DrawDims(PhiloxStream& random, size_t rank, int64_t most) {
  constexpr int64_t kSizes[] = {1, 2, 3, 7, 31, 32, 33, 65};
  std::vector<int64_t> dims;
  int64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = kSizes[random.Below(8)];
    dims.push_back(count * size > most ? 2 : size);
    count *= dims.back();
  }
  if (rank > 0 && random.Below(12) == 0) dims[random.Below(static_cast<uint32_t>(rank))] = 0;
  return dims;
}

std::vector<int64_t> DrawOrder(PhiloxStream& random, size_t count) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < count; ++i)
    order.insert(order.begin() + random.Below(static_cast<uint32_t>(i + 1)),
                 static_cast<int64_t>(i));
  return order;
}

Shape DrawRepeated(PhiloxStream& random, const std::vector<int64_t>& dims) {
  const uint32_t missing = random.Below(static_cast<uint32_t>(dims.size() + 1));
  std::vector<int64_t> repeated(dims.begin() + missing, dims.end());
  for (int64_t& dim : repeated) dim = random.Below(2) == 0 ? 1 : dim;
  return Shape(repeated);
}

DType DrawType(PhiloxStream& random) {
  constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                              DType::kInt64,   DType::kUInt8,   DType::kBool};
  return kTypes[random.Below(6)];
}

}  // namespace tfjob::kernels::cuda
