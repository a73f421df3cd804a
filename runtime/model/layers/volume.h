// Defines windows over volumes [depth,height,width,channels], and convolutions of volumes, which
// are implemented as 2-D convolutions of planes.
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

// Returns the windows over three axes of examples of this shape. Returns InvalidArgument if the
// examples have a different rank, or are too small for a window.
StatusOr<VolumeWindow> VolumeWindowOver(const WindowArguments& arguments, const Shape& example);
// Checks the depth of a kernel, which is limited because each plane requires separate ops.
Status CheckDepth(const VolumeWindow& window);

// Reshapes volumes [batch,depth,height,width,channels] to images
// [batch·depth,height,width,channels].
graph::Output PlanesOf(graph::Builder& b, graph::Output volumes);

// Convolves volumes with a kernel [depth,height,width,channels / groups,filters]. Returns
// [batch,depth,height,width,filters].
graph::Output ConvolvedVolume(graph::Builder& b, graph::Output volumes, graph::Output kernel,
                              const VolumeWindow& over, int64_t groups);
// Returns the gradient of ConvolvedVolume (without groups) with respect to its input. `out` is the
// shape of one example of this gradient. The kernel is [depth,height,width,out's channels,volumes'
// channels]. `over` contains the windows over `out`.
graph::Output EnlargedVolume(graph::Builder& b, graph::Output volumes, graph::Output kernel,
                             const VolumeWindow& over, const Shape& out);

}  // namespace tfjob::model::layers
