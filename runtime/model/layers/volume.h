// Defines windows over volumes [depth,height,width,channels], and convolutions of volumes, which
// consist of 2-D convolutions of planes.
#pragma once

#include "runtime/model/layers/padding.h"

namespace tfjob::model::layers {

struct VolumeWindow {
  WindowAxis depth;
  Window plane;

  // Returns the numbers of windows over an example of this shape, followed by `channels`:
  // [depth,height,width,channels].
  Shape Count(const Shape& in, int64_t channels) const;
};

// Returns the windows of three axes over examples of this shape. Returns InvalidArgument if the
// examples have another rank, or no window fits.
StatusOr<VolumeWindow> VolumeWindowOver(const WindowArguments& arguments, const Shape& example);

// Returns volumes [batch,depth,height,width,channels] as images
// [batch·depth,height,width,channels].
graph::Output PlanesOf(graph::Builder& b, graph::Output volumes);

// Returns the convolution of volumes with a kernel [depth,height,width,channels / groups,filters]:
// [batch,depth,height,width,filters].
graph::Output ConvolvedVolume(graph::Builder& b, graph::Output volumes, graph::Output kernel,
                              const VolumeWindow& over, int64_t groups);
// Returns the gradient of ConvolvedVolume (without groups) with respect to its input. `out` is the
// shape of one example of this gradient. The kernel is [depth,height,width,out's channels,volumes'
// channels], and `over` are the windows over `out`.
graph::Output EnlargedVolume(graph::Builder& b, graph::Output volumes, graph::Output kernel,
                             const VolumeWindow& over, const Shape& out);

}  // namespace tfjob::model::layers
