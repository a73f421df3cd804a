// Implements ops that move or set elements.
#include <cstring>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cpu/rows.h"
#include "runtime/kernels/cpu/strided.h"

namespace tfjob::kernels::cpu {
namespace {

// Copies a tensor, possibly to a different row stride. Does nothing if input and output are the
// same memory.
class CopyRows : public Kernel {
 public:
  CopyRows(const Operand& in, const Operand& out, int source)
      : rows_({&out, &in}),
        size_(static_cast<int64_t>(SizeOf(out.dtype))),
        in_stride_(in.row_stride * size_),
        out_stride_(out.row_stride * size_),
        source_(source) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* in = static_cast<const char*>(inputs[source_]);
    auto* out = static_cast<char*>(outputs[0]);
    if (in == out) return;
    rows_.ForEach(stream, [&](int64_t row, int64_t begin, int64_t end) {
      std::memcpy(out + row * out_stride_ + begin * size_, in + row * in_stride_ + begin * size_,
                  static_cast<size_t>((end - begin) * size_));
    });
  }

 private:
  Rows rows_;
  int64_t size_, in_stride_, out_stride_;
  int source_;
};

Prepared PrepareIdentity(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 1));
  return Make<CopyRows>(request.inputs[0], request.outputs[0], 0);
}

// Copies the elements in row-major order. The rows of input and output may have different lengths.
template <typename T>
class ReshapeRows : public Kernel {
 public:
  ReshapeRows(const Operand& in, const Operand& out) : in_(in), out_(out) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream&) override {
    const auto* in = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    const int64_t count = in_.shape.num_elements(), in_cols = in_.cols(), out_cols = out_.cols();
    for (int64_t i = 0; i < count;) {
      const int64_t in_col = i % in_cols, out_col = i % out_cols;
      const int64_t run = std::min(in_cols - in_col, out_cols - out_col);
      std::copy_n(in + i / in_cols * in_.row_stride + in_col, run,
                  out + i / out_cols * out_.row_stride + out_col);
      i += run;
    }
  }

 private:
  Operand in_, out_;
};

Prepared PrepareReshape(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  if (in.dtype != out.dtype || in.shape.num_elements() != out.shape.num_elements()) {
    return InvalidArgument("input and output must have one dtype and as many elements");
  }
  if (in.dense() && out.dense()) {
    const Shape flat({in.shape.num_elements()});
    return Make<CopyRows>(Operand::Dense(in.dtype, flat), Operand::Dense(in.dtype, flat), 0);
  }
  return ForSize(in.dtype, [&]<typename T>(Type<T>) { return Make<ReshapeRows<T>>(in, out); });
}

template <typename T>
class Transpose : public Kernel {
 public:
  explicit Transpose(const StridedLoop& loop) : loop_(loop) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* in = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    // If there are two loops, the rows of the input become the columns of the output. Copy tiles of
    // elements, to use whole cache lines of both the input and the output.
    const int64_t tile = loop_.rank() == 2 ? kTile : 1;
    const int64_t groups = (loop_.outer() + tile - 1) / tile;
    const int64_t grain = 1 + kGrain / std::max<int64_t>(1, tile * loop_.inner());
    stream.ParallelFor(groups, grain, [&](int64_t begin, int64_t end) {
      if (tile > 1) return Tiles(in, out, begin * tile, std::min(end * tile, loop_.outer()));
      loop_.ForEachInner(begin, end, [&](const auto& at) {
        CopyInner(in + at[1], out + at[0], 0, loop_.inner());
      });
    });
  }

 private:
  static constexpr int64_t kTile = 16;

  void Tiles(const T* in, T* out, int64_t begin, int64_t end) const {
    for (int64_t row = begin; row < end; row += kTile) {
      for (int64_t col = 0; col < loop_.inner(); col += kTile) {
        const int64_t last = std::min(col + kTile, loop_.inner());
        for (int64_t i = row; i < std::min(row + kTile, end); ++i) {
          CopyInner(in + i * loop_.outer_stride(1), out + i * loop_.outer_stride(0), col, last);
        }
      }
    }
  }

  void CopyInner(const T* in, T* out, int64_t begin, int64_t end) const {
    const int64_t in_step = loop_.inner_stride(1), out_step = loop_.inner_stride(0);
    for (int64_t i = begin; i < end; ++i) out[i * out_step] = in[i * in_step];
  }

  StridedLoop loop_;
};

Prepared PrepareTranspose(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  const int rank = in.shape.rank();
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  for (int d = 0; d < rank; ++d) perm[static_cast<size_t>(d)] = rank - 1 - d;
  perm = request.attributes.Get("perm", perm);
  std::vector<bool> seen(static_cast<size_t>(rank));
  bool valid = perm.size() == seen.size() && in.dtype == out.dtype && rank <= kMaxRank;
  const Strides own = StridesOf(in);
  Strides strides{};
  std::vector<int64_t> dims;
  for (size_t d = 0; valid && d < perm.size(); ++d) {
    valid = perm[d] >= 0 && perm[d] < rank && !seen[static_cast<size_t>(perm[d])];
    if (!valid) break;
    seen[static_cast<size_t>(perm[d])] = true;
    strides[d] = own[static_cast<size_t>(perm[d])];
    dims.push_back(in.shape.dim(static_cast<int>(perm[d])));
  }
  if (!valid) return InvalidArgument("perm must name each of the ", rank, " dimensions once");
  RETURN_IF_ERROR(ExpectShape(out, Shape(dims)));
  const Strides operands[] = {StridesOf(out), strides};
  ASSIGN_OR_RETURN(StridedLoop loop, StridedLoop::Create(out.shape, operands));
  return ForSize(in.dtype, [&]<typename T>(Type<T>) { return Make<Transpose<T>>(loop); });
}

template <typename T>
class Fill : public Kernel {
 public:
  Fill(const Operand& out, T value) : rows_({&out}), stride_(out.row_stride), value_(value) {}

  void Run(const void* const*, void* const* outputs, void*, Stream& stream) override {
    auto* out = static_cast<T*>(outputs[0]);
    rows_.ForEach(stream, [&](int64_t row, int64_t begin, int64_t end) {
      std::fill(out + row * stride_ + begin, out + row * stride_ + end, value_);
    });
  }

 private:
  Rows rows_;
  int64_t stride_;
  T value_;
};

Prepared PrepareFill(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 0, 1));
  const Operand& out = request.outputs[0];
  const double value = NumberOf(request.attributes, "value", 0);
  return ForAny(out.dtype,
                [&]<typename T>(Type<T>) { return Make<Fill<T>>(out, static_cast<T>(value)); });
}

class Const : public Kernel {
 public:
  Const(Tensor value, const Operand& out)
      : value_(std::move(value)), copy_(Operand::Dense(out.dtype, out.shape), out, 0) {}

  void Run(const void* const*, void* const* outputs, void* workspace, Stream& stream) override {
    const void* value = value_.bytes().data();
    copy_.Run(&value, outputs, workspace, stream);
  }

 private:
  const Tensor value_;
  CopyRows copy_;
};

Prepared PrepareConst(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 0, 1));
  const auto* value = request.attributes.Find<Tensor>("value");
  const Operand& out = request.outputs[0];
  if (value == nullptr || value->dtype() != out.dtype || value->shape() != out.shape) {
    return InvalidArgument("the attribute value must be a tensor like the output");
  }
  return Make<Const>(*value, out);
}

Prepared PrepareAssign(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 2));
  return Make<CopyRows>(request.inputs[1], request.outputs[0], 1);
}

// Adds values of type V to a variable of type T.
template <typename T, typename V = T>
class AssignAdd : public Kernel {
 public:
  explicit AssignAdd(const KernelRequest& request)
      : rows_({&request.outputs[0], &request.inputs[1]}),
        variable_stride_(request.outputs[0].row_stride),
        value_stride_(request.inputs[1].row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* value = static_cast<const V*>(inputs[1]);
    auto* variable = static_cast<T*>(outputs[0]);
    rows_.ForEach(stream, [&](int64_t row, int64_t begin, int64_t end) {
      T* to = variable + row * variable_stride_ + begin;
      const auto add = [](T sum, V more) { return sum + static_cast<T>(more); };
      Map(end - begin, add, to, to, value + row * value_stride_ + begin);
    });
  }

 private:
  Rows rows_;
  int64_t variable_stride_, value_stride_;
};

Prepared PrepareAssignAdd(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  if (request.inputs[0] != request.outputs[0]) {
    return InvalidArgument("the output must be the variable itself");
  }
  if (AddsToDoubles(request)) {
    RETURN_IF_ERROR(ExpectShape(request.inputs[1], request.outputs[0].shape));
    return Make<AssignAdd<double, float>>(request);
  }
  RETURN_IF_ERROR(ExpectAlike(request, 0, 2));
  return ForNumber(request.outputs[0].dtype,
                   [&]<typename T>(Type<T>) { return Make<AssignAdd<T>>(request); });
}

}  // namespace

KernelTable::Entries MoveKernels() {
  return {{"Identity", {PrepareIdentity, {{0, 0}}}},
          {"Reshape", {PrepareReshape, {{0, 0}}}},
          {"Transpose", {PrepareTranspose, {}}},
          {"Fill", {PrepareFill, {}}},
          {"Const", {PrepareConst, {}}},
          {"Assign", {PrepareAssign, {{0, 0, InPlace::kAlways}}}},
          {"AssignAdd", {PrepareAssignAdd, {{0, 0, InPlace::kAlways}}}}};
}

}  // namespace tfjob::kernels::cpu
