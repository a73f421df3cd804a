#include "runtime/model/layers/pooling.h"

#include "runtime/graph/ops.h"
#include "runtime/model/mask.h"

namespace tfjob::model::layers {
namespace {

constexpr IntegerRule kSizes = {.least = 1, .expected = "numbers of at least 1, one per axis"};

WindowArguments WithStrides(WindowArguments window) {
  if (window.strides.empty()) window.strides = window.size;
  return window;
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
  ASSIGN_OR_RETURN(const Window over, WithStrides(window).Over(in));
  const Shape image = ImageOf(in);
  return ExampleShape(in.rank(), over.height.Count(image.dim(1)), over.width.Count(image.dim(2)),
                      in.dim(-1));
}

template <PoolingKind kKind, int kRank>
graph::Output Pooling<kKind, kRank>::Apply(const LayerCall& call) const {
  const Window over = *WithStrides(window).Over(call.ExampleShape());
  const graph::Output images = Images(call);
  const graph::Output pooled = kKind == PoolingKind::kMax ? graph::MaxPool(call.b, images, over)
                                                          : graph::AvgPool(call.b, images, over);
  return Examples(call.b, pooled, kRank + 1);
}

namespace {

// Returns NaN for an example in which no step counts, as in Keras.
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
  RETURN_IF_ERROR(WindowArguments::Ones(kRank).Over(in).status());
  return keepdims ? ExampleShape(in.rank(), 1, 1, in.dim(-1)) : Shape{in.dim(-1)};
}

template <PoolingKind kKind, int kRank>
graph::Output GlobalPooling<kKind, kRank>::Apply(const LayerCall& call) const {
  std::vector<int64_t> axes = {1};
  if (kRank == 2) axes.push_back(2);
  if (kKind == PoolingKind::kAverage && kRank == 1 && call.mask().valid())
    return MaskedAverage(call, keepdims);
  return kKind == PoolingKind::kMax ? graph::Max(call.b, call.x(), std::move(axes), keepdims)
                                    : graph::Mean(call.b, call.x(), std::move(axes), keepdims);
}

template struct Pooling<PoolingKind::kMax, 1>;
template struct Pooling<PoolingKind::kMax, 2>;
template struct Pooling<PoolingKind::kAverage, 1>;
template struct Pooling<PoolingKind::kAverage, 2>;
template struct GlobalPooling<PoolingKind::kMax, 1>;
template struct GlobalPooling<PoolingKind::kMax, 2>;
template struct GlobalPooling<PoolingKind::kAverage, 1>;
template struct GlobalPooling<PoolingKind::kAverage, 2>;

}  // namespace tfjob::model::layers
