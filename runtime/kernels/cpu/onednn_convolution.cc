// Computes convolutions with oneDNN. Images and outputs keep their layout. oneDNN chooses the
// layout of the filter; each run converts the filter to this layout in the workspace.
#include <algorithm>
#include <array>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/kernels/cpu/convolution.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/one_thread.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

using dnnl::memory;

constexpr int64_t kMostParts = 16;
// Limits, approximately, the memory for the partial gradients of a filter. There are at least two
// partial gradients, regardless of this limit.
constexpr int64_t kPartialBytes = 16 << 20;
constexpr size_t kAlignment = 64;

const dnnl::engine& Cpu() {
  static const auto* const kEngine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *kEngine;
}

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Returns the descriptor of a dense tensor [images,height,width,channels].
memory::desc ImagesOf(const Shape& shape, int64_t images) {
  return {{images, shape.dim(3), shape.dim(1), shape.dim(2)},
          memory::data_type::f32,
          memory::format_tag::nhwc};
}

// Returns the dimensions of the filter in oneDNN's order: [groups,] outputs, channels, height,
// width. The outputs and channels are those of one group.
memory::dims FilterDims(const Convolution& c) {
  const Shape& shape = c.filter.shape;
  memory::dims dims = {shape.dim(3) / c.groups(), shape.dim(2), shape.dim(0), shape.dim(1)};
  if (c.groups() > 1) dims.insert(dims.begin(), c.groups());
  return dims;
}

// Returns the descriptor of the filter as the graph stores it: [height,width,channels,outputs].
memory::desc StoredFilter(const Convolution& c) {
  const int64_t outputs = c.outputs(), depth = c.filter.shape.dim(2);
  memory::dims strides = {1, outputs, c.window.width.size * depth * outputs, depth * outputs};
  if (c.groups() > 1) strides.insert(strides.begin(), outputs / c.groups());
  return {FilterDims(c), memory::data_type::f32, strides};
}

memory::desc BiasOf(const Convolution& c) {
  return {{c.outputs()}, memory::data_type::f32, memory::format_tag::a};
}

// Contains a oneDNN primitive for a convolution of some of the images.
struct Primitive {
  dnnl::primitive primitive;
  memory::desc filter, scratchpad;
};

// Creates the primitive for this number of images. `filter` may let oneDNN choose the layout.
Primitive MakePrimitive(ConvolutionPass pass, const Convolution& c, int64_t images,
                        const memory::desc& filter) {
  const memory::desc image = ImagesOf(c.image.shape, images);
  const memory::desc output = ImagesOf(c.output.shape, images);
  const WindowAxis &height = c.window.height, &width = c.window.width;
  const memory::dims strides = {height.stride, width.stride};
  const memory::dims dilations = {height.dilation - 1, width.dilation - 1};
  const memory::dims before = {height.before, width.before}, after = {height.after, width.after};
  const auto algorithm = dnnl::algorithm::convolution_direct;
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc bias = c.bias ? BiasOf(c) : memory::desc();
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, image, filter, bias, output, strides,
       dilations, before, after},
      attributes, Cpu());
  if (pass == ConvolutionPass::kForward)
    return {dnnl::convolution_forward(forward), forward.weights_desc(), forward.scratchpad_desc()};
  if (pass == ConvolutionPass::kBackwardInput) {
    const dnnl::convolution_backward_data::primitive_desc backward(
        {algorithm, image, filter, output, strides, dilations, before, after}, attributes, Cpu(),
        forward);
    return {dnnl::convolution_backward_data(backward), backward.weights_desc(),
            backward.scratchpad_desc()};
  }
  const dnnl::convolution_backward_weights::primitive_desc backward(
      {algorithm, image, filter, output, strides, dilations, before, after}, attributes, Cpu(),
      forward);
  return {dnnl::convolution_backward_weights(backward), backward.diff_weights_desc(),
          backward.scratchpad_desc()};
}

// Returns oneDNN's argument indices for the image, the filter and the output of a pass.
std::array<int, 3> ArgumentsOf(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::kForward:
      return {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
    case ConvolutionPass::kBackwardInput:
      return {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
    case ConvolutionPass::kBackwardFilter:
      break;
  }
  return {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
}

void Execute(const dnnl::primitive& primitive, const dnnl::stream& stream,
             std::span<const dnnl_exec_arg_t> arguments) {
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data());
  ENFORCE(status == dnnl_success, "oneDNN runs what it has prepared");
}

memory MemoryOf(const memory::desc& descriptor) {
  return {descriptor, Cpu(), DNNL_MEMORY_NONE};
}

// Converts a filter from one layout to another.
class Conversion {
 public:
  Conversion(const memory::desc& from, const memory::desc& to)
      : from_(MemoryOf(from)), to_(MemoryOf(to)), reorder_(Describe(from, to)), stream_(Cpu()) {}

  void Run(const void* from, void* to) {
    KeepOneDnnOnThisThread();
    from_.set_data_handle(const_cast<void*>(from));
    to_.set_data_handle(to);
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from_.get()}, {DNNL_ARG_TO, to_.get()}};
    Execute(reorder_, stream_, arguments);
  }

 private:
  // Let the caller provide the scratchpad. If oneDNN owned the scratchpad, the primitive could only
  // be used on the thread that created it.
  static dnnl::reorder::primitive_desc Describe(const memory::desc& from, const memory::desc& to) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::reorder::primitive_desc described(Cpu(), from, Cpu(), to, attributes);
    if (described.scratchpad_desc().get_size() == 0) return described;
    throw dnnl::error(dnnl_unimplemented, "converting the filter needs a scratchpad");
  }

  memory from_, to_;
  dnnl::reorder reorder_;
  dnnl::stream stream_;
};

// Computes a convolution for some of the images. Several parts may run at the same time.
class Part {
 public:
  // Creates a part that covers `images` images, starting with image `first`. Parts that only read
  // the filter may share it. The caller must set the filter's address before running the parts,
  // because setting the address may write to the filter's padding.
  Part(ConvolutionPass pass, const Convolution& c, const Primitive& primitive, memory filter,
       int64_t first, int64_t images)
      : primitive_(primitive.primitive),
        image_(MemoryOf(ImagesOf(c.image.shape, images))),
        filter_(std::move(filter)),
        output_(MemoryOf(ImagesOf(c.output.shape, images))),
        scratchpad_(MemoryOf(primitive.scratchpad)),
        bias_(MemoryOf(BiasOf(c))),
        stream_(Cpu()),
        image_offset_(first * (c.image.shape.num_elements() / c.images())),
        output_offset_(first * (c.output.shape.num_elements() / c.images())),
        outputs_(images * (c.output.shape.num_elements() / c.images())),
        relu_(c.relu) {
    const std::array<int, 3> numbers = ArgumentsOf(pass);
    arguments_ = {{{numbers[0], image_.get()},
                   {numbers[1], filter_.get()},
                   {numbers[2], output_.get()},
                   {DNNL_ARG_SCRATCHPAD, scratchpad_.get()},
                   {DNNL_ARG_BIAS, bias_.get()}}};
  }

  memory& filter() { return filter_; }

  // Runs the part. `bias` may be null.
  void Run(const void* image, const void* output, const void* bias, void* scratchpad) {
    KeepOneDnnOnThisThread();
    image_.set_data_handle(static_cast<float*>(const_cast<void*>(image)) + image_offset_);
    output_.set_data_handle(static_cast<float*>(const_cast<void*>(output)) + output_offset_);
    scratchpad_.set_data_handle(scratchpad);
    bias_.set_data_handle(const_cast<void*>(bias));
    const std::span<const dnnl_exec_arg_t> arguments = arguments_;
    Execute(primitive_, stream_, arguments.first(bias == nullptr ? 4 : 5));
    // Do not use the rectifier of oneDNN, which replaces NaN with 0.
    if (relu_) {
      auto* const values = static_cast<float*>(output_.get_data_handle());
      Map(outputs_, Relu(), values, values);
    }
  }

 private:
  dnnl::primitive primitive_;
  memory image_, filter_, output_, scratchpad_, bias_;
  dnnl::stream stream_;
  int64_t image_offset_, output_offset_, outputs_;
  bool relu_;
  std::array<dnnl_exec_arg_t, 5> arguments_;  // the bias comes last
};

class OneDnnConvolution : public Kernel {
 public:
  OneDnnConvolution(ConvolutionPass pass, const Convolution& c) : pass_(pass), bias_(c.bias) {
    const int64_t parts = PartsOf(pass, c), images = c.images();
    const memory::desc any(FilterDims(c), memory::data_type::f32, memory::format_tag::any);
    const int64_t most = (images + parts - 1) / parts;  // the number of images in the largest part
    const Primitive large = MakePrimitive(pass, c, most, any);
    Primitive small = large;
    if (images % parts != 0) small = MakePrimitive(pass, c, most - 1, large.filter);
    const memory shared = MemoryOf(large.filter);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = images * part / parts, end = images * (part + 1) / parts;
      parts_.emplace_back(pass, c, end - first == most ? large : small,
                          backward_filter() ? MemoryOf(large.filter) : shared, first, end - first);
    }
    const memory::desc stored = StoredFilter(c);
    filter_floats_ = static_cast<int64_t>(large.filter.get_size() / sizeof(float));
    filter_bytes_ = Aligned(large.filter.get_size());
    scratchpad_bytes_ = Aligned(std::max(small.scratchpad.get_size(), large.scratchpad.get_size()));
    if (backward_filter()) {
      conversions_.emplace_back(large.filter, stored);
    } else if (large.filter != stored) {
      conversions_.emplace_back(stored, large.filter);
    }
  }

  size_t workspace_bytes() const override {
    const size_t filters = backward_filter() ? parts_.size() : conversions_.size();
    return filters * filter_bytes_ + parts_.size() * scratchpad_bytes_;
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    char* const space = static_cast<char*>(workspace);
    if (backward_filter()) {
      for (size_t i = 0; i < parts_.size(); ++i)
        parts_[i].filter().set_data_handle(space + i * filter_bytes_);
      RunParts(inputs[0], inputs[1], nullptr, space + parts_.size() * filter_bytes_, stream);
      AddUp(reinterpret_cast<float*>(space), stream);
      conversions_[0].Run(space, outputs[0]);
      return;
    }
    const bool forward = pass_ == ConvolutionPass::kForward;
    const void* filter = inputs[forward ? 1 : 0];
    if (!conversions_.empty()) {
      conversions_[0].Run(filter, space);
      filter = space;
    }
    parts_[0].filter().set_data_handle(const_cast<void*>(filter));  // shared by all parts
    RunParts(forward ? inputs[0] : outputs[0], forward ? outputs[0] : inputs[1],
             bias_ ? inputs[2] : nullptr, space + conversions_.size() * filter_bytes_, stream);
  }

 private:
  bool backward_filter() const { return pass_ == ConvolutionPass::kBackwardFilter; }

  void RunParts(const void* image, const void* output, const void* bias, char* scratchpads,
                Stream& stream) {
    stream.ParallelFor(static_cast<int64_t>(parts_.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        parts_[i].Run(image, output, bias, scratchpads + i * scratchpad_bytes_);
    });
  }

  // Adds the filter gradients of all other parts to that of the first part.
  void AddUp(float* filters, Stream& stream) const {
    const size_t step = filter_bytes_ / sizeof(float);
    stream.ParallelFor(filter_floats_, kGrain, [&](int64_t begin, int64_t end) {
      for (size_t part = 1; part < parts_.size(); ++part) {
        const float* from = filters + part * step;
#pragma GCC ivdep
        for (int64_t i = begin; i < end; ++i) filters[i] += from[i];
      }
    });
  }

  ConvolutionPass pass_;
  bool bias_;
  std::vector<Part> parts_;
  std::vector<Conversion> conversions_;  // the conversion of the filter, if necessary
  int64_t filter_floats_ = 0;
  size_t filter_bytes_ = 0, scratchpad_bytes_ = 0;  // rounded up
};

}  // namespace

int64_t PartsOf(ConvolutionPass pass, const Convolution& c) {
  int64_t most = kMostParts;
  if (pass == ConvolutionPass::kBackwardFilter) {
    const auto bytes = static_cast<int64_t>(c.filter.bytes());
    most = std::clamp<int64_t>(kPartialBytes / bytes, 2, kMostParts);
  }
  return std::min(c.images(), most);
}

Prepared PrepareOneDnnConvolution(ConvolutionPass pass, const Convolution& convolution) {
  KeepOneDnnOnThisThread();
  try {
    return Make<OneDnnConvolution>(pass, convolution);
  } catch (const dnnl::error& error) {
    return Internal("oneDNN cannot prepare this convolution: ", error.message);
  }
}

}  // namespace tfjob::kernels::cpu
