#include "runtime/model/layers/volume.h"

#include <algorithm>

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

// Shifts the elements of axis 1 towards its end by `shift`, and crops or zero-pads the axis to
// `size` elements. At least one of the original elements must remain.
Output Shifted(Builder& b, Output x, int64_t shift, int64_t size) {
  if (!x.valid()) return x;
  std::vector<int64_t> dims = b.shape(x).dims(), begin(dims.size()), front = begin, back = begin;
  begin[1] = std::max<int64_t>(-shift, 0);
  const int64_t kept = std::min(dims[1], size - shift) - begin[1];
  if (kept < dims[1]) {
    dims[1] = kept;
    x = Slice(b, x, begin, dims);
  }
  front[1] = std::max<int64_t>(shift, 0);
  back[1] = size - front[1] - kept;
  if (front[1] == 0 && back[1] == 0) return x;
  return Pad(b, x, std::move(front), std::move(back));
}

// Combines the planes of each window along the depth into one plane with more channels. Returns
// images [batch·windows,height,width,groups·size·(channels / groups)].
Output Unfolded(Builder& b, Output volumes, const WindowAxis& depth, int64_t groups) {
  const Shape in = b.shape(volumes);
  const int64_t count = depth.Count(in.dim(1)), channels = in.dim(4) / groups;
  // Split the depth into rows of `stride` planes. The k-th planes of all windows are then in the
  // same column, in consecutive rows.
  const int64_t stride = count == 1 ? 1 : depth.stride;
  const int64_t rows = (depth.size - 1) * depth.dilation / stride + count;
  const Output split = graph::Reshape(b, Shifted(b, volumes, depth.before, rows * stride),
                                      {in.dim(0), rows, stride, in.dim(2), in.dim(3), in.dim(4)});
  std::vector<Output> planes;
  for (int64_t k = 0; k < depth.size; ++k) {
    const int64_t first = k * depth.dilation;
    const Output plane = Slice(b, split, {0, first / stride, first % stride, 0, 0, 0},
                               {in.dim(0), count, 1, in.dim(2), in.dim(3), in.dim(4)});
    planes.push_back(
        graph::Reshape(b, plane, {in.dim(0) * count, in.dim(2), in.dim(3), groups, channels}));
  }
  // Join the planes within each group, because the channels of a group must be adjacent in a
  // convolution.
  const Output joined = planes.size() == 1 ? planes[0] : Concat(b, std::move(planes), 4);
  return graph::Reshape(b, joined,
                        {in.dim(0) * count, in.dim(2), in.dim(3), groups * depth.size * channels});
}

// Rearranges a kernel [depth,height,width,in,out] to [height,width,depth·in,out].
Output PlaneKernel(Builder& b, Output kernel) {
  const Shape shape = b.shape(kernel);
  return graph::Reshape(b, Transpose(b, kernel, {1, 2, 0, 3, 4}),
                        {shape.dim(1), shape.dim(2), shape.dim(0) * shape.dim(3), shape.dim(4)});
}

}  // namespace

Shape VolumeWindow::Count(const Shape& in, int64_t channels) const {
  return {depth.Count(in.dim(0)), plane.height.Count(in.dim(1)), plane.width.Count(in.dim(2)),
          channels};
}

StatusOr<VolumeWindow> VolumeWindowOver(const WindowArguments& arguments, const Shape& example) {
  if (example.rank() != 4 || example.CheckedElements().value_or(0) == 0) {
    return InvalidArgument("expected examples of shape [depth,height,width,channels], got ",
                           example.ToString());
  }
  ASSIGN_OR_RETURN(const Window depth, arguments.Part(0, 1).Over({example.dim(0), example.dim(3)}));
  ASSIGN_OR_RETURN(const Window plane,
                   arguments.Part(1, 2).Over({example.dim(1), example.dim(2), example.dim(3)}));
  return VolumeWindow{depth.width, plane};
}

Status CheckDepth(const VolumeWindow& window) {
  if (window.depth.size <= graph::kMostJoined) return OkStatus();
  return InvalidArgument("expected a kernel_size of at most ", graph::kMostJoined,
                         " along the depth, got ", window.depth.size);
}

Output PlanesOf(Builder& b, Output volumes) {
  const Shape shape = b.shape(volumes);
  return graph::Reshape(b, volumes,
                        {shape.dim(0) * shape.dim(1), shape.dim(2), shape.dim(3), shape.dim(4)});
}

Output ConvolvedVolume(Builder& b, Output volumes, Output kernel, const VolumeWindow& over,
                       int64_t groups) {
  const Shape in = b.shape(volumes);
  const Output images = Unfolded(b, volumes, over.depth, groups);
  const Output convolved = graph::Conv2D(b, images, PlaneKernel(b, kernel), over.plane);
  const Shape out = over.Count(ExampleOf(in), b.shape(kernel).dim(4));
  return graph::Reshape(b, convolved, Batched(in.dim(0), out));
}

Output EnlargedVolume(Builder& b, Output volumes, Output kernel, const VolumeWindow& over,
                      const Shape& out) {
  const Shape in = b.shape(volumes);
  const WindowAxis& depth = over.depth;
  const int64_t batch = in.dim(0), planes = in.dim(1), plane = out.dim(1) * out.dim(2);
  const Shape images = {batch * planes, out.dim(1), out.dim(2), depth.size * out.dim(3)};
  const Output spread = graph::Conv2DBackpropInput(b, PlaneKernel(b, kernel), PlanesOf(b, volumes),
                                                   images, over.plane);
  const Output by_window =
      graph::Reshape(b, spread, {batch, planes, plane, depth.size, out.dim(3)});
  Output sum;
  for (int64_t k = 0; k < depth.size; ++k) {
    // Plane d of the input contributes to plane d·stride + shift of the output.
    const int64_t shift = k - depth.before;
    if (shift >= out.dim(0) || shift + (planes - 1) * depth.stride < 0) continue;
    Output part = Slice(b, by_window, {0, 0, 0, k, 0}, {batch, planes, plane, 1, out.dim(3)});
    part = Shifted(b, graph::Reshape(b, part, {batch * planes, 1, plane * out.dim(3)}), 0,
                   depth.stride);
    part = graph::Reshape(b, part, {batch, planes * depth.stride, plane * out.dim(3)});
    part = Shifted(b, part, shift, out.dim(0));
    sum = sum.valid() ? graph::Add(b, sum, part) : part;
  }
  return graph::Reshape(b, sum, Batched(batch, out));
}

}  // namespace tfjob::model::layers
