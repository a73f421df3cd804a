#include "runtime/model/layers/pooling.h"

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/layers/volume.h"

namespace tfjob::model::layers {
namespace {

constexpr IntegerRule kSizes = {.least = 1, .expected = "numbers of at least 1, one per axis"};

WindowArguments WithStrides(WindowArguments window) {
  if (window.strides.empty()) window.strides = window.size;
  return window;
}

graph::Output PooledImages(graph::Builder& b, graph::Output images, const Window& over,
                           PoolingKind kind) {
  return kind == PoolingKind::kMax ? graph::MaxPool(b, images, over)
                                   : graph::AvgPool(b, images, over);
}

// Pools each plane, and then pools the results along the depth. Neither pass includes the padding.
graph::Output PooledVolume(const LayerCall& call, const VolumeWindow& over, PoolingKind kind) {
  graph::Builder& b = call.b;
  const Shape in = call.ExampleShape();
  const Shape out = over.Count(in, in.dim(-1));
  const int64_t batch = call.batch_size(), plane = out.dim(1) * out.dim(2) * out.dim(3);
  const graph::Output planes = PooledImages(b, PlanesOf(b, call.x()), over.plane, kind);
  const graph::Output columns = graph::Reshape(b, planes, {batch, in.dim(0), 1, plane});
  const graph::Output pooled = PooledImages(b, columns, {.height = over.depth}, kind);
  return graph::Reshape(b, pooled, Batched(batch, out));
}

}  // namespace

template <PoolingKind kKind, int kRank>
void Pooling<kKind, kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.PerAxis("pool_size", window.size, kSizes);
  window = WithStrides(window);
  visitor.PerAxis("strides", window.strides, kSizes);
  visitor.Choice("padding", window.padding, std::span(kPaddings).first(2));
  visitor.Only("data_format", "\"channels_last\"");
}

template <PoolingKind kKind, int kRank>
StatusOr<Shape> Pooling<kKind, kRank>::OutputShape(const Shape& in) const {
  if constexpr (kRank == 3) {
    ASSIGN_OR_RETURN(const VolumeWindow over, VolumeWindowOver(WithStrides(window), in));
    return over.Count(in, in.dim(-1));
  }
  ASSIGN_OR_RETURN(const Window over, WithStrides(window).Over(in));
  const Shape image = ImageOf(in);
  return ExampleShape(in.rank(), over.height.Count(image.dim(1)), over.width.Count(image.dim(2)),
                      in.dim(-1));
}

template <PoolingKind kKind, int kRank>
graph::Output Pooling<kKind, kRank>::Apply(const LayerCall& call) const {
  if constexpr (kRank == 3)
    return PooledVolume(call, *VolumeWindowOver(WithStrides(window), call.ExampleShape()), kKind);
  const Window over = *WithStrides(window).Over(call.ExampleShape());
  return Examples(call.b, PooledImages(call.b, Images(call), over, kKind), kRank + 1);
}

namespace {

// Returns the average over the unmasked steps. As in Keras, the result is NaN if all steps of an
// example are masked.
graph::Output MaskedAverage(const LayerCall& call, bool keepdims) {
  graph::Builder& b = call.b;
  const graph::Output mask = AlongSteps(b, call.mask(), call.x());
  const graph::Output count = Sum(b, Cast(b, mask, b.dtype(call.x())), {1}, keepdims);
  return Div(b, Sum(b, Masked(b, call.mask(), call.x()), {1}, keepdims), count);
}

}  // namespace

template <PoolingKind kKind, int kRank>
void GlobalPooling<kKind, kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.Only("data_format", "\"channels_last\"");
  visitor.Flag("keepdims", keepdims);
}

template <PoolingKind kKind, int kRank>
StatusOr<Shape> GlobalPooling<kKind, kRank>::OutputShape(const Shape& in) const {
  if constexpr (kRank == 3) {
    RETURN_IF_ERROR(VolumeWindowOver(WindowArguments::Ones(kRank), in).status());
    return keepdims ? Shape{1, 1, 1, in.dim(-1)} : Shape{in.dim(-1)};
  }
  RETURN_IF_ERROR(WindowArguments::Ones(kRank).Over(in).status());
  return keepdims ? ExampleShape(in.rank(), 1, 1, in.dim(-1)) : Shape{in.dim(-1)};
}

template <PoolingKind kKind, int kRank>
graph::Output GlobalPooling<kKind, kRank>::Apply(const LayerCall& call) const {
  std::vector<int64_t> axes;
  for (int64_t axis = 1; axis <= kRank; ++axis) axes.push_back(axis);
  if (kKind == PoolingKind::kAverage && kRank == 1 && call.mask().valid())
    return MaskedAverage(call, keepdims);
  return kKind == PoolingKind::kMax ? graph::Max(call.b, call.x(), std::move(axes), keepdims)
                                    : graph::Mean(call.b, call.x(), std::move(axes), keepdims);
}

template struct Pooling<PoolingKind::kMax, 1>;
template struct Pooling<PoolingKind::kMax, 2>;
template struct Pooling<PoolingKind::kMax, 3>;
template struct Pooling<PoolingKind::kAverage, 1>;
template struct Pooling<PoolingKind::kAverage, 2>;
template struct Pooling<PoolingKind::kAverage, 3>;
template struct GlobalPooling<PoolingKind::kMax, 1>;
template struct GlobalPooling<PoolingKind::kMax, 2>;
template struct GlobalPooling<PoolingKind::kMax, 3>;
template struct GlobalPooling<PoolingKind::kAverage, 1>;
template struct GlobalPooling<PoolingKind::kAverage, 2>;
template struct GlobalPooling<PoolingKind::kAverage, 3>;

}  // namespace tfjob::model::layers
