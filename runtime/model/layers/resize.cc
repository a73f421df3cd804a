#include "runtime/model/layers/resize.h"

#include "runtime/graph/ops.h"
#include "runtime/tensor/half.h"

namespace tfjob::model::layers {
namespace {

Status ExpectRank(const Shape& in, int rank) {
  if (in.rank() == rank + 1) return OkStatus();
  return InvalidArgument("expected examples of shape ",
                         rank == 1   ? "[steps,channels]"
                         : rank == 2 ? "[height,width,channels]"
                                     : "[depth,height,width,channels]",
                         ", got ", in.ToString());
}

void ChannelsLast(ArgumentVisitor& visitor, int rank) {
  if (rank == 1) {
    visitor.Retired("data_format", "\"channels_last\"");  // some 1D layers have it only in Keras 3
  } else {
    visitor.Only("data_format", "\"channels_last\"");
  }
}

// Returns one side of the margins [before,after,before,after,…]: every second number, starting at
// index `first`, with a zero for the batch in front and a zero for the channels at the end.
std::vector<int64_t> Side(const std::vector<int64_t>& margins, size_t first) {
  std::vector<int64_t> side = {0};
  for (size_t i = first; i < margins.size(); i += 2) side.push_back(margins[i]);
  side.push_back(0);
  return side;
}

}  // namespace

template <int kRank>
void ZeroPadding<kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.Margins("padding", padding);
  ChannelsLast(visitor, kRank);
}

template <int kRank>
StatusOr<Shape> ZeroPadding<kRank>::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectRank(in, kRank));
  std::vector<int64_t> dims = in.dims();
  for (size_t i = 0; i < kRank; ++i) dims[i] += padding[2 * i] + padding[2 * i + 1];
  return Shape(std::move(dims));
}

template <int kRank>
graph::Output ZeroPadding<kRank>::Apply(const LayerCall& call) const {
  return graph::Pad(call.b, call.x(), Side(padding, 0), Side(padding, 1));
}

template <int kRank>
void Cropping<kRank>::Arguments(ArgumentVisitor& visitor) {
  visitor.Margins("cropping", cropping);
  ChannelsLast(visitor, kRank);
}

template <int kRank>
StatusOr<Shape> Cropping<kRank>::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectRank(in, kRank));
  std::vector<int64_t> dims = in.dims();
  for (size_t i = 0; i < kRank; ++i) {
    dims[i] -= cropping[2 * i] + cropping[2 * i + 1];
    if (dims[i] < 1) {
      return InvalidArgument("expected a cropping below the ", in.dims()[i], " elements of axis ",
                             i + 1, ", got ", cropping[2 * i], " and ", cropping[2 * i + 1]);
    }
  }
  return Shape(std::move(dims));
}

template <int kRank>
graph::Output Cropping<kRank>::Apply(const LayerCall& call) const {
  StatusOr<Shape> shape = OutputShape(call.ExampleShape());
  if (!shape.ok()) return call.b.Fail(shape.status());
  return graph::Slice(call.b, call.x(), Side(cropping, 0),
                      Batched(call.batch_size(), *shape).dims());
}

template <int kRank>
void UpSampling<kRank>::Arguments(ArgumentVisitor& visitor) {
  if constexpr (kRank == 1) {
    visitor.Integer("size", size[0], kPositive);  // Keras writes a number instead of a list
  } else {
    visitor.PerAxis("size", size, {.least = 1, .expected = "numbers of at least 1, one per axis"});
    if constexpr (kRank == 2) visitor.Choice("interpolation", interpolation, kInterpolations);
    visitor.Only("data_format", "\"channels_last\"");
  }
}

template <int kRank>
StatusOr<Shape> UpSampling<kRank>::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(ExpectRank(in, kRank));
  std::vector<int64_t> dims = in.dims();
  for (size_t i = 0; i < kRank; ++i) {
    if (__builtin_mul_overflow(dims[i], size[i], &dims[i]))
      return InvalidArgument("expected a smaller size than ", size[i]);
    if (interpolation != Interpolation::kNearest &&
        (dims[i] < 1 || in.dims()[i] > kMostResampleWeights / dims[i]))
      return InvalidArgument("expected smaller images or a smaller size than ", size[i], ", got ",
                             in.ToString());
  }
  return Shape(std::move(dims));
}

template <int kRank>
graph::Output UpSampling<kRank>::Apply(const LayerCall& call) const {
  StatusOr<Shape> shape = OutputShape(call.ExampleShape());
  if (!shape.ok()) return call.b.Fail(shape.status());
  if (interpolation == Interpolation::kNearest) return Repeat(call, *shape);
  const DType dtype = call.b.dtype(call.x());
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64 && !IsHalf(dtype)) {
    return call.b.Fail(InvalidArgument("interpolation: expected \"nearest\" for values of type ",
                                       Name(dtype), ", got \"",
                                       kInterpolations[static_cast<size_t>(interpolation)], "\""));
  }
  return Resample(call.b, call.x(), shape->dim(0), shape->dim(1), interpolation,
                  /*antialias=*/false);
}

// Inserts a new axis after each axis except the channels, repeats the values along the new axes,
// and merges each new axis with the axis before it.
template <int kRank>
graph::Output UpSampling<kRank>::Repeat(const LayerCall& call, const Shape& out) const {
  const Shape in = call.ExampleShape();
  std::vector<int64_t> spread = {call.batch_size()}, repeated = spread;
  for (size_t i = 0; i < kRank; ++i) {
    for (std::vector<int64_t>* dims : {&spread, &repeated}) dims->push_back(in.dims()[i]);
    spread.push_back(1);
    repeated.push_back(size[i]);
  }
  for (std::vector<int64_t>* dims : {&spread, &repeated}) dims->push_back(in.dim(-1));
  graph::Builder& b = call.b;
  const graph::Output values = graph::Reshape(b, call.x(), Shape(std::move(spread)));
  return graph::Reshape(b, graph::BroadcastTo(b, values, Shape(std::move(repeated))),
                        Batched(call.batch_size(), out));
}

template struct ZeroPadding<1>;
template struct ZeroPadding<2>;
template struct ZeroPadding<3>;
template struct Cropping<1>;
template struct Cropping<2>;
template struct Cropping<3>;
template struct UpSampling<1>;
template struct UpSampling<2>;
template struct UpSampling<3>;

}  // namespace tfjob::model::layers
