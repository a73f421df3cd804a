#include "runtime/model/layers/adaptive_pooling.h"

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

// Pools rows [begin, begin + size) of images [left,rows,1,right] into a single row.
Output PooledRow(Builder& b, Output images, int64_t begin, int64_t size, PoolingKind kind) {
  const Shape shape = b.shape(images);
  const Output rows = Slice(b, images, {0, begin, 0, 0}, {shape.dim(0), size, 1, shape.dim(3)});
  const Window whole = {.height = {.size = size}};
  return kind == PoolingKind::kMax ? MaxPool(b, rows, whole) : AvgPool(b, rows, whole);
}

// Divides axis `axis` of x into `count` windows, and pools each window.
Output PooledAxis(Builder& b, Output x, int axis, int64_t count, PoolingKind kind) {
  if (!x.valid()) return x;
  std::vector<int64_t> dims = b.shape(x).dims();
  const auto at = static_cast<size_t>(axis);
  const int64_t size = dims[at];
  int64_t left = 1, right = 1;
  for (size_t i = 0; i < at; ++i) left *= dims[i];
  for (size_t i = at + 1; i < dims.size(); ++i) right *= dims[i];
  dims[at] = count;
  const Output images = graph::Reshape(b, x, {left, size, 1, right});
  if (size % count == 0) {
    const Window window = {.height = {.size = size / count, .stride = size / count}};
    const Output pooled =
        kind == PoolingKind::kMax ? MaxPool(b, images, window) : AvgPool(b, images, window);
    return graph::Reshape(b, pooled, Shape(dims));
  }
  std::vector<Output> rows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * size / count, end = ((i + 1) * size + count - 1) / count;
    rows.push_back(PooledRow(b, images, begin, end - begin, kind));
  }
  return graph::Reshape(b, Concat(b, std::move(rows), 1), Shape(dims));
}

}  // namespace

template <PoolingKind kKind, int kRank>
void AdaptivePooling<kKind, kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.PerAxis("output_size", output_size,
                  {.least = 1,
                   .most = graph::kMostJoined,
                   .expected = "numbers from 1 to 1024, one per axis",
                   .required = true});
  visitor.Only("data_format", "\"channels_last\"");
}

template <PoolingKind kKind, int kRank>
StatusOr<Shape> AdaptivePooling<kKind, kRank>::OutputShape(const Shape& in) const {
  if (in.rank() != kRank + 1 || in.CheckedElements().value_or(0) == 0) {
    return InvalidArgument("expected examples with ", kRank, " axes and channels, got ",
                           in.ToString());
  }
  std::vector<int64_t> dims = output_size;
  dims.push_back(in.dim(-1));
  return Shape(std::move(dims));
}

template <PoolingKind kKind, int kRank>
Output AdaptivePooling<kKind, kRank>::Apply(const LayerCall& call) const {
  Output x = call.x();
  for (int axis = 0; axis < kRank; ++axis)
    x = PooledAxis(call.b, x, axis + 1, output_size[static_cast<size_t>(axis)], kKind);
  return x;
}

template struct AdaptivePooling<PoolingKind::kMax, 1>;
template struct AdaptivePooling<PoolingKind::kMax, 2>;
template struct AdaptivePooling<PoolingKind::kMax, 3>;
template struct AdaptivePooling<PoolingKind::kAverage, 1>;
template struct AdaptivePooling<PoolingKind::kAverage, 2>;
template struct AdaptivePooling<PoolingKind::kAverage, 3>;

}  // namespace tfjob::model::layers
