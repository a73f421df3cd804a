#include <cmath>
#include <utility>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {
namespace {

struct AttentionSizes {
  int64_t batch, queries, keys, heads, depth, value_depth;
};

AttentionSizes DrawAttentionSizes(PhiloxStream& random) {
  AttentionSizes s{};
  s.batch = Draw(random, {1, 1, 2, 3});
  s.heads = Draw(random, {1, 2, 3});
  s.queries = Draw(random, {1, 2, 15, 16, 17, 40, 64, 65, 100});
  s.keys = random.Below(3) == 0 ? s.queries : Draw(random, {1, 2, 7, 16, 33, 63, 64, 65, 130});
  s.depth = Draw(random, {1, 4, 7, 16, 30, 64, 72, 128});
  s.value_depth = random.Below(2) == 0 ? s.depth : Draw(random, {1, 3, 8, 64, 66, 128});
  return s;
}

// Returns a mask's shape. Each of its dimensions may be 1, and the first ones may be absent.
Shape DrawAttentionMask(PhiloxStream& random, const AttentionSizes& s) {
  const auto drawn = [&random](int64_t dim) { return random.Below(2) == 0 ? dim : 1; };
  std::vector<int64_t> dims;
  for (const int64_t dim : {s.batch, s.heads, s.queries, s.keys}) dims.push_back(drawn(dim));
  dims.erase(dims.begin(), dims.begin() + random.Below(4));
  return Shape(std::move(dims));
}

}  // namespace

std::vector<Comparison> AttentionCases(uint64_t seed) {
  PhiloxStream random(seed);
  const AttentionSizes s = DrawAttentionSizes(random);
  const DType dtype = seed % 2 == 0 ? DType::kBFloat16 : DType::kFloat16;
  const bool special = random.Below(8) == 0;
  const auto heads = [&](int64_t positions, int64_t size) {
    return RandomOperand{Shape({s.batch, positions, s.heads, size}), dtype, -1, 1};
  };
  RandomOperand q = heads(s.queries, s.depth);
  q.special = special;
  const RandomOperand k = heads(s.keys, s.depth), v = heads(s.keys, s.value_depth);
  const RandomOperand y = heads(s.queries, s.value_depth);
  const RandomOperand statistics{Shape({2, s.batch, s.heads, s.queries}), DType::kFloat32, 1, 3};
  Attributes attributes = {{"scale", 1 / std::sqrt(static_cast<double>(s.depth))}};
  std::vector<RandomOperand> more;
  if (random.Below(2) == 0) {
    attributes.Set("masked", dtype == DType::kFloat16 ? -3e4 : -1e9);
    attributes.Set("clears", random.Below(2) == 0);
    more.push_back({DrawAttentionMask(random, s), DType::kBool});
  }
  if (random.Below(2) == 0) {
    attributes.Set("rate", 0.25);
    attributes.Set("op_id", int64_t{random.Below(100)});
    attributes.Set("replica", int64_t{random.Below(3)});
    for (int i = 0; i < 2; ++i) more.push_back({Shape({}), DType::kInt64, 0, 1e6});
  }
  std::vector<RandomOperand> inputs = {q, k, v};
  std::vector<RandomOperand> backward = {q, k, v, y, statistics, y};
  for (auto* all : {&inputs, &backward}) all->insert(all->end(), more.begin(), more.end());
  // Weights are rounded to a half type before they are multiplied.
  const double rounding = dtype == DType::kBFloat16 ? 0x1p-8 : 0x1p-11;
  return {{"Attention", attributes, inputs, {y, statistics}, rounding},
          {"AttentionGrad", attributes, backward, {q, k, v}, 8 * rounding}};
}

}  // namespace tfjob::kernels::cuda
