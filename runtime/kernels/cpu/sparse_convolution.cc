// Computes the gradients of a convolution whose output's gradient dy is mostly zero, as it is if
// the output was pooled. Only the elements of dy that are not 0 are multiplied.
//
// A row of the filter covers `length` consecutive elements of a padded image: the channels of the
// pixels next to each other. The gradients therefore add up multiples of such rows: an element of
// dy adds a row of its filter to the image's gradient, and a row of the image to its filter's
// gradient.
#include <algorithm>
#include <span>
#include <vector>

#include "runtime/kernels/cpu/convolution.h"
#include "runtime/kernels/cpu/scaled_rows.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

// Limits the workspace of one part, and thus the size of the images.
constexpr int64_t kPartBytes = 1 << 20;
constexpr int64_t kFloatsPerLine = 64 / sizeof(float);

int64_t WholeLines(int64_t floats) {
  return (floats + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine;
}

// Describes the sizes of one image, of its padded copy, and of the filter.
struct Sizes {
  explicit Sizes(const Convolution& c)
      : height(c.window.height),
        width(c.window.width),
        image_rows(c.image.shape.dim(1)),
        image_columns(c.image.shape.dim(2)),
        rows(c.output.shape.dim(1)),
        columns(c.output.shape.dim(2)),
        channels(c.channels()),
        outputs(c.outputs()),
        padded_rows((rows - 1) * height.stride + height.extent()),
        padded_columns((columns - 1) * width.stride + width.extent()) {}

  WindowAxis height, width;
  int64_t image_rows, image_columns, rows, columns, channels, outputs;
  int64_t padded_rows, padded_columns;

  int64_t pixels() const { return rows * columns; }  // of the output
  int64_t length() const { return width.size * channels; }
  int64_t filter_floats() const { return height.size * outputs * length(); }
  int64_t image_floats() const { return image_rows * image_columns * channels; }
  int64_t padded_floats() const { return padded_rows * padded_columns * channels; }
  // Returns where the first row of the filter starts in the padded image, for a pixel of the
  // output.
  int64_t OffsetOf(int64_t row, int64_t column) const {
    return (row * height.stride * padded_columns + column * width.stride) * channels;
  }
  // Returns the distance between the rows of the filter in the padded image.
  int64_t row_step() const { return height.dilation * padded_columns * channels; }
  // Returns the largest workspace of a part, in floats: a padded image, and a ScaledRow for each
  // element of dy and for one more pixel.
  int64_t part_floats() const {
    return WholeLines(padded_floats()) + 2 * WholeLines((pixels() + 1) * outputs);
  }
};

// Copies the image into the padded image, or the padded image into the image; elements that only
// the copied one has are left out, and those that only the other one has are set to 0.
void Pad(const Sizes& s, const float* image, float* padded) {
  std::fill_n(padded, s.padded_floats(), 0.0f);
  const int64_t rows = std::min(s.image_rows, s.padded_rows - s.height.before);
  const int64_t columns = std::min(s.image_columns, s.padded_columns - s.width.before);
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(
        image + row * s.image_columns * s.channels, columns * s.channels,
        padded + ((row + s.height.before) * s.padded_columns + s.width.before) * s.channels);
  }
}

void Crop(const Sizes& s, const float* padded, float* image) {
  const int64_t rows = std::min(s.image_rows, s.padded_rows - s.height.before);
  const int64_t columns = std::min(s.image_columns, s.padded_columns - s.width.before);
  for (int64_t row = 0; row < s.image_rows; ++row) {
    float* const to = image + row * s.image_columns * s.channels;
    const int64_t copied = row < rows ? columns * s.channels : 0;
    std::copy_n(padded + ((row + s.height.before) * s.padded_columns + s.width.before) * s.channels,
                copied, to);
    std::fill_n(to + copied, s.image_columns * s.channels - copied, 0.0f);
  }
}

// Divides the images into parts. Each part has a part of the workspace.
class SparseConvolution : public Kernel {
 public:
  SparseConvolution(ConvolutionPass pass, const Convolution& c)
      : s_(c), sum_(s_.length()), images_(c.images()), parts_(PartsOf(pass, c)) {}

 protected:
  // Calls body(part, first image, end) for each part.
  template <typename Body>
  void ForEachPart(Stream& stream, const Body& body) const {
    stream.ParallelFor(parts_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        body(part, images_ * part / parts_, images_ * (part + 1) / parts_);
    });
  }

  const Sizes s_;
  const RowSum sum_;
  const int64_t images_, parts_;
};

// Keeps the filter in the workspace as [rows,outputs,length].
class SparseBackpropInput : public SparseConvolution {
 public:
  using SparseConvolution::SparseConvolution;

  size_t workspace_bytes() const override {
    return static_cast<size_t>(s_.filter_floats() + parts_ * part_floats()) * sizeof(float);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const filter = static_cast<float*>(workspace);
    TransposeFilter(static_cast<const float*>(inputs[0]), filter, stream);
    ForEachPart(stream, [&](int64_t part, int64_t first, int64_t end) {
      float* const space = filter + s_.filter_floats() + part * part_floats();
      for (int64_t image = first; image < end; ++image) {
        RunImage(static_cast<const float*>(inputs[1]) + image * s_.pixels() * s_.outputs, filter,
                 space, static_cast<float*>(outputs[0]) + image * s_.image_floats());
      }
    });
  }

 private:
  int64_t part_floats() const { return s_.part_floats() + WholeLines(s_.pixels() + 1); }

  void TransposeFilter(const float* from, float* to, Stream& stream) const {
    stream.ParallelFor(s_.height.size, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * s_.outputs; row < end * s_.outputs; ++row) {
        const float* const column =
            from + row / s_.outputs * s_.length() * s_.outputs + row % s_.outputs;
        for (int64_t i = 0; i < s_.length(); ++i)
          to[row * s_.length() + i] = column[i * s_.outputs];
      }
    });
  }

  void RunImage(const float* dy, const float* filter, float* space, float* dx) const {
    float* const padded = space;
    auto* const terms = reinterpret_cast<ScaledRow*>(padded + WholeLines(s_.padded_floats()));
    // The terms of pixel i end at ends[i].
    auto* const ends = reinterpret_cast<int32_t*>(space + s_.part_floats());
    int64_t found = 0;
    for (int64_t pixel = 0; pixel < s_.pixels(); ++pixel) {
      found += FindScaledRows(s_.outputs, dy + pixel * s_.outputs, s_.length(), terms + found);
      ends[pixel] = static_cast<int32_t>(found);
    }
    std::fill_n(padded, s_.padded_floats(), 0.0f);
    for (int64_t row = 0; row < s_.height.size; ++row)
      AddRow(filter + row * s_.outputs * s_.length(), terms, ends, padded + row * s_.row_step());
    Crop(s_, padded, dx);
  }

  // Adds the contributions of one row of the filter.
  void AddRow(const float* filter, const ScaledRow* terms, const int32_t* ends,
              float* padded) const {
    const ScaledRow* begin = terms;
    for (int64_t row = 0; row < s_.rows; ++row) {
      for (int64_t column = 0; column < s_.columns; ++column) {
        const ScaledRow* const end = terms + *ends++;
        sum_.Add({begin, end}, filter, padded + s_.OffsetOf(row, column));
        begin = end;
      }
    }
  }
};

// Adds up the gradient of the filter in the workspace, as [rows,outputs,length], for each part.
class SparseBackpropFilter : public SparseConvolution {
 public:
  using SparseConvolution::SparseConvolution;

  size_t workspace_bytes() const override {
    return static_cast<size_t>(parts_ * part_floats()) * sizeof(float);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const sums = static_cast<float*>(workspace);
    ForEachPart(stream, [&](int64_t part, int64_t first, int64_t end) {
      float* const sum = sums + part * s_.filter_floats();
      float* const space = sums + parts_ * s_.filter_floats() + part * space_floats();
      std::fill_n(sum, s_.filter_floats(), 0.0f);
      for (int64_t image = first; image < end; ++image) {
        AddImage(static_cast<const float*>(inputs[0]) + image * s_.image_floats(),
                 static_cast<const float*>(inputs[1]) + image * s_.pixels() * s_.outputs, space,
                 sum);
      }
    });
    AddUp(sums, static_cast<float*>(outputs[0]), stream);
  }

 private:
  int64_t space_floats() const { return s_.part_floats() + WholeLines(s_.outputs); }
  int64_t part_floats() const { return s_.filter_floats() + space_floats(); }

  void AddImage(const float* image, const float* dy, float* space, float* sum) const {
    float* const padded = space;
    auto* const terms = reinterpret_cast<ScaledRow*>(padded + WholeLines(s_.padded_floats()));
    auto* const counts = reinterpret_cast<int32_t*>(space + s_.part_floats());
    SortTerms(dy, terms, counts);
    Pad(s_, image, padded);
    for (int64_t output = 0; output < s_.outputs; ++output) {
      const std::span<const ScaledRow> own(terms + output * s_.pixels(),
                                           static_cast<size_t>(counts[output]));
      for (int64_t row = 0; row < s_.height.size; ++row) {
        sum_.Add(own, padded + row * s_.row_step(),
                 sum + (row * s_.outputs + output) * s_.length());
      }
    }
  }

  // Finds the terms of each output. Those of output i start at terms[i · pixels].
  void SortTerms(const float* dy, ScaledRow* terms, int32_t* counts) const {
    ScaledRow* const of_pixel = terms + s_.pixels() * s_.outputs;
    std::fill_n(counts, s_.outputs, 0);
    for (int64_t row = 0; row < s_.rows; ++row) {
      for (int64_t column = 0; column < s_.columns; ++column, dy += s_.outputs) {
        const auto offset = static_cast<int32_t>(s_.OffsetOf(row, column));
        const int64_t found = FindScaledRows(s_.outputs, dy, 1, of_pixel);
        for (int64_t i = 0; i < found; ++i) {
          const int64_t output = of_pixel[i].offset;
          terms[output * s_.pixels() + counts[output]++] = {offset, of_pixel[i].value};
        }
      }
    }
  }

  // Adds up the parts, and transposes the sum to the layout of the filter.
  void AddUp(float* sums, float* filter, Stream& stream) const {
    const int64_t floats = s_.filter_floats(), rows = s_.outputs * s_.length();
    stream.ParallelFor(s_.height.size, 1 + kGrain / rows, [&](int64_t begin, int64_t end) {
      for (int64_t part = 1; part < parts_; ++part) {
        const float* const from = sums + part * floats;
#pragma GCC ivdep
        for (int64_t i = begin * rows; i < end * rows; ++i) sums[i] += from[i];
      }
      for (int64_t row = begin * s_.length(); row < end * s_.length(); ++row) {
        const float* const column = sums + row / s_.length() * rows + row % s_.length();
        for (int64_t i = 0; i < s_.outputs; ++i)
          filter[row * s_.outputs + i] = column[i * s_.length()];
      }
    });
  }
};

}  // namespace

bool SparseIsFaster(const Convolution& c, double density) {
  if (c.groups() != 1 || c.window.width.dilation != 1 || c.channels() % kRowUnit != 0) return false;
  const Sizes s(c);
  if (4 * (s.part_floats() + s.pixels()) > kPartBytes) return false;
  // The cycles per element of dy, approximately, with AVX-512: a term needs a quarter as long as
  // oneDNN needs for all elements.
  const auto rows = static_cast<double>(s.height.size);
  const auto vectors = static_cast<double>(s.length() / kRowUnit);
  const double find = 2, sort = 4 * density,
               sums = 1.5 * rows * vectors / static_cast<double>(s.outputs);
  return find + sort + sums + density * rows * (vectors + 2) / 2 < rows * vectors / 2;
}

Prepared PrepareSparseConvolution(ConvolutionPass pass, const Convolution& convolution) {
  if (pass == ConvolutionPass::kBackwardInput) return Make<SparseBackpropInput>(pass, convolution);
  return Make<SparseBackpropFilter>(pass, convolution);
}

}  // namespace tfjob::kernels::cpu
