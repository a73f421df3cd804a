// Implements convolutions as products of two matrices. Each row of the first matrix contains the
// elements that one window covers (im2col), ordered by group; the second matrix is the filter. If
// each window covers a single pixel, the image itself is the first matrix. Otherwise, the first
// matrix is assembled in the workspace, piece by piece.
//
// Results of half types are rounded only once: sums that are added in several steps are stored as
// float32.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/finished_product.h"
#include "runtime/kernels/cuda/vision/depthwise.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/spans.h"

namespace tfjob::kernels::cuda {
namespace {

using cpu::Convolution;
using cpu::ConvolutionPass;

// Consecutive windows, and the product that is computed for them.
struct Piece {
  int64_t first = 0, windows = 0;
  const FinishedProduct* product = nullptr;
};

struct Sizes {
  explicit Sizes(const Convolution& c)
      : windows(c.output.rows()),
        windows_per_image(windows / c.images()),
        taps(c.window.height.size * c.window.width.size),
        elements(taps * c.channels()) {}

  // Returns the number of windows in a piece: whole images, unless an image is too large.
  int64_t PieceOf(size_t bytes, FloatType type) const {
    const auto row = static_cast<size_t>(elements * ElementBytes(type));
    const int64_t most = std::max<int64_t>(1, static_cast<int64_t>(bytes / row));
    return most < windows_per_image ? most : most / windows_per_image * windows_per_image;
  }

  const int64_t windows, windows_per_image;
  const int64_t taps;      // pixels that a window covers
  const int64_t elements;  // elements that a window covers
};

// Returns whether each window covers only the pixel with the window's own index.
bool SeesPixels(const Convolution& c) {
  const auto sees = [](const WindowAxis& axis) {
    return axis.size == 1 && axis.stride == 1 && axis.before == 0 && axis.after == 0;
  };
  return sees(c.window.height) && sees(c.window.width);
}

// Describes the product for this number of windows. If `accumulate` is set, the product is added to
// the result.
ProductDescription DescriptionFor(ConvolutionPass pass, const Convolution& c, int64_t windows,
                                  bool accumulate, FloatType type, Arithmetic arithmetic) {
  const Sizes sizes(c);
  const int64_t seen = sizes.elements / c.groups(), outputs = c.outputs() / c.groups();
  const int64_t matrix = SeesPixels(c) ? c.image.row_stride : sizes.elements;
  const int64_t filter = c.filter.row_stride, output = c.output.row_stride;
  cpu::ProductLayout layout{windows, outputs, seen, false, false, matrix, filter, output};
  int64_t first_step = seen, second_step = outputs, result_step = outputs;  // from group to group
  if (pass == ConvolutionPass::kBackwardInput) {
    layout = {windows, seen, outputs, false, true, output, filter, matrix};
    first_step = outputs;
    result_step = seen;
  } else if (pass == ConvolutionPass::kBackwardFilter) {
    layout = {seen, outputs, windows, true, false, matrix, output, filter};
  }
  ProductDescription product = DescriptionOf(layout, type, arithmetic);
  product.batch = static_cast<int32_t>(c.groups());
  product.a.batch_stride = second_step;
  product.b.batch_stride = first_step;
  product.batch_stride_d = result_step;
  product.beta = accumulate ? 1 : 0;
  return product;
}

class ConvolutionKernel final : public Kernel {
 public:
  ConvolutionKernel(const GpuAccess& gpu, ConvolutionPass pass, const Convolution& convolution,
                    FloatType type)
      : launcher_(gpu.launcher),
        pass_(pass),
        c_(convolution),
        type_(type),
        sizes_(c_),
        spans_(SpansOf(c_.window, c_.image.shape)),
        in_place_(SeesPixels(c_)),
        matrix_type_(pass == ConvolutionPass::kBackwardInput ? FloatType::kFloat32 : type),
        piece_(in_place_
                   ? sizes_.windows
                   : std::min(sizes_.windows, sizes_.PieceOf(gpu.window_bytes, matrix_type_))) {}

  Status Prepare(const GpuAccess& gpu) {
    const bool half = type_ != FloatType::kFloat32;
    if (half && pass_ == ConvolutionPass::kBackwardInput && CutsImages())
      return cpu::NoKernelFor(c_.image.dtype);  // each piece would round the sum in the image
    if (half && pass_ == ConvolutionPass::kBackwardFilter && piece_ < sizes_.windows) {
      Operand sums = c_.filter;
      sums.dtype = DType::kFloat32;
      ASSIGN_OR_RETURN(round_sums_, PrepareProgram(launcher_, {sums}, c_.filter, "Copy i0"));
      sums_bytes_ = (sums.bytes() + 63) / 64 * 64;
    }
    return PrepareProducts(gpu);
  }

  size_t workspace_bytes() const override { return matrix_bytes() + sums_bytes_ + product_bytes_; }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const space = static_cast<std::byte*>(workspace);
    void* const sums = round_sums_ == nullptr ? outputs[0] : space + matrix_bytes();
    for (const Piece& piece : pieces_) {
      ProductOperands operands{.workspace = space + matrix_bytes() + sums_bytes_};
      switch (pass_) {
        case ConvolutionPass::kForward:
          operands.a = inputs[1];
          operands.b = Gathered(piece, inputs[0], workspace, stream);
          operands.bias = c_.bias ? inputs[2] : nullptr;
          operands.d = static_cast<std::byte*>(outputs[0]) + OutputOffset(piece);
          break;
        case ConvolutionPass::kBackwardInput:
          operands.a = inputs[0];
          operands.b = static_cast<const std::byte*>(inputs[1]) + OutputOffset(piece);
          operands.d = in_place_ ? outputs[0] : workspace;
          break;
        case ConvolutionPass::kBackwardFilter:
          operands.a = static_cast<const std::byte*>(inputs[1]) + OutputOffset(piece);
          operands.b = Gathered(piece, inputs[0], workspace, stream);
          operands.d = sums;
          break;
      }
      piece.product->Run(operands, stream);
      if (pass_ == ConvolutionPass::kBackwardInput && !in_place_)
        Add(piece, static_cast<const float*>(workspace), outputs[0], stream);
    }
    if (round_sums_ != nullptr) round_sums_->Run(&sums, outputs, nullptr, stream);
  }

 private:
  Status PrepareProducts(const GpuAccess& gpu) {
    for (int64_t first = 0; first < sizes_.windows; first += piece_) {
      const int64_t windows = std::min(piece_, sizes_.windows - first);
      const bool accumulate = pass_ == ConvolutionPass::kBackwardFilter && first > 0;
      auto& product = products_[{windows, accumulate}];
      if (product == nullptr) {
        ASSIGN_OR_RETURN(product, PrepareProduct(gpu, windows, accumulate));
      }
      pieces_.push_back({first, windows, product.get()});
      product_bytes_ = std::max(product_bytes_, product->workspace_bytes());
    }
    return OkStatus();
  }

  // Returns whether a piece begins in the middle of an image.
  bool CutsImages() const {
    return piece_ < sizes_.windows && piece_ % sizes_.windows_per_image != 0;
  }

  size_t matrix_bytes() const {
    if (in_place_) return 0;
    const int64_t bytes = piece_ * sizes_.elements * ElementBytes(matrix_type_);
    return (static_cast<size_t>(bytes) + 63) / 64 * 64;
  }

  // Returns the offset, in bytes, of the piece's first window in the output.
  int64_t OutputOffset(const Piece& piece) const {
    return piece.first * c_.output.row_stride * ElementBytes(type_);
  }

  StatusOr<std::unique_ptr<FinishedProduct>> PrepareProduct(const GpuAccess& gpu, int64_t windows,
                                                            bool accumulate) const {
    Finish finish;
    if (pass_ == ConvolutionPass::kForward) finish = {c_.bias, c_.relu ? "Relu" : ""};
    const Operand out{.dtype = c_.output.dtype,
                      .shape = Shape({windows, c_.outputs()}),
                      .row_stride = c_.output.row_stride};
    ProductDescription product =
        DescriptionFor(pass_, c_, windows, accumulate, type_, gpu.arithmetic);
    const bool to_matrix = pass_ == ConvolutionPass::kBackwardInput && !in_place_;
    if (to_matrix || round_sums_ != nullptr) product.result = FloatType::kFloat32;
    return FinishedProduct::Prepare(gpu, product, finish, out);
  }

  // Returns whether the kernels can access four channels at once. The workspace is always aligned.
  bool QuadsAt(const void* image) const {
    return c_.filter.shape.dim(2) % 4 == 0 && c_.image.row_stride % 4 == 0 &&
           reinterpret_cast<uintptr_t>(image) % static_cast<size_t>(4 * ElementBytes(type_)) == 0;
  }

  template <typename Parameter>
  void SubmitWindows(const char* kernel, bool quads, const Parameter& p, Stream& stream) const {
    const unsigned blocks = Blocks(quads ? p.count / 4 : p.count, kWindowThreads);
    Submit(launcher_, kernel, {blocks}, {kWindowThreads}, p, stream);
  }

  // Returns the matrix of the piece's windows: the image itself, or a copy in `matrix`.
  const void* Gathered(const Piece& piece, const void* image, void* matrix, Stream& stream) const {
    if (in_place_) return image;
    const GatherWindowsParameter p{.image = image,
                                   .matrix = matrix,
                                   .image_stride = c_.image.row_stride,
                                   .spans = spans_,
                                   .groups = static_cast<uint32_t>(c_.groups()),
                                   .depth = static_cast<uint32_t>(c_.filter.shape.dim(2)),
                                   .first = static_cast<uint32_t>(piece.first),
                                   .count = static_cast<uint32_t>(piece.windows * sizes_.elements),
                                   .bytes = static_cast<int32_t>(ElementBytes(type_))};
    SubmitWindows(QuadsAt(image) ? "GatherQuads" : "GatherWindows", QuadsAt(image), p, stream);
    return matrix;
  }

  // Adds each row of the matrix to the pixels of the image that the row's window covers.
  void Add(const Piece& piece, const float* matrix, void* image, Stream& stream) const {
    const int64_t first = piece.first / sizes_.windows_per_image;
    const int64_t last = (piece.first + piece.windows - 1) / sizes_.windows_per_image;
    const int64_t elements = c_.image.shape.num_elements() / c_.images();
    const AddWindowsParameter p{.matrix = matrix,
                                .image = image,
                                .image_stride = c_.image.row_stride,
                                .spans = spans_,
                                .groups = static_cast<uint32_t>(c_.groups()),
                                .depth = static_cast<uint32_t>(c_.filter.shape.dim(2)),
                                .first = static_cast<uint32_t>(piece.first),
                                .windows = static_cast<uint32_t>(piece.windows),
                                .first_image = static_cast<uint32_t>(first),
                                .count = static_cast<uint32_t>((last - first + 1) * elements),
                                .type = type_};
    SubmitWindows(QuadsAt(image) ? "AddQuads" : "AddWindows", QuadsAt(image), p, stream);
  }

  const Launcher launcher_;
  const ConvolutionPass pass_;
  const Convolution c_;
  const FloatType type_;
  const Sizes sizes_;
  const WindowSpans spans_;
  const bool in_place_;
  const FloatType matrix_type_;
  const int64_t piece_;  // windows per piece
  // Set if the filter's gradients from several pieces are summed in the workspace: writes the sums
  // to the output.
  std::unique_ptr<Kernel> round_sums_;
  size_t sums_bytes_ = 0;
  // The products, keyed by the number of windows and by whether the product is added to the result.
  std::map<std::pair<int64_t, bool>, std::unique_ptr<FinishedProduct>> products_;
  std::vector<Piece> pieces_;
  size_t product_bytes_ = 0;
};

Prepared PrepareConvolution(const GpuAccess& gpu, ConvolutionPass pass,
                            const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Convolution convolution, cpu::ConvolutionOf(pass, request));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  for (const Operand* operand : {&convolution.image, &convolution.filter, &convolution.output})
    RETURN_IF_ERROR(CheckCount(*operand));
  if (convolution.groups() > 1 && convolution.filter.shape.dim(2) == 1) {
    RETURN_IF_ERROR(ExpectFloat32(request));
    return PrepareDepthwise(gpu.launcher, pass, convolution);
  }
  auto kernel = std::make_unique<ConvolutionKernel>(gpu, pass, convolution, type);
  RETURN_IF_ERROR(kernel->Prepare(gpu));
  return kernel;
}

}  // namespace

KernelTable::Entries ConvolutionKernels(const GpuAccess& gpu) {
  const auto entry = [&gpu](ConvolutionPass pass) -> KernelEntry {
    return {[gpu, pass](const KernelRequest& r) { return PrepareConvolution(gpu, pass, r); }, {}};
  };
  return {{"Conv2D", entry(ConvolutionPass::kForward)},
          {"FusedConv2D", entry(ConvolutionPass::kForward)},
          {"Conv2DBackpropInput", entry(ConvolutionPass::kBackwardInput)},
          {"Conv2DBackpropFilter", entry(ConvolutionPass::kBackwardFilter)}};
}

}  // namespace tfjob::kernels::cuda
