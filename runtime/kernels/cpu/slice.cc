// Implements ops that cut, pad and join tensors.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/cpu/strided.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

// Copies a block from a place in one tensor to a place in another.
template <typename T>
class BlockCopy {
 public:
  BlockCopy(const StridedLoop& loop, int64_t from, int64_t to)
      : loop_(loop), from_(from), to_(to) {}

  void Run(const T* in, T* out, Stream& stream) const {
    const int64_t grain = 1 + kGrain / std::max<int64_t>(1, loop_.inner());
    const int64_t in_step = loop_.inner_stride(1), out_step = loop_.inner_stride(0);
    stream.ParallelFor(loop_.outer(), grain, [&](int64_t begin, int64_t end) {
      loop_.ForEachInner(begin, end, [&](const auto& at) {
        const T* const source = in + from_ + at[1];
        T* const target = out + to_ + at[0];
        if (in_step == 1 && out_step == 1) {
          std::copy_n(source, loop_.inner(), target);
        } else {
          for (int64_t i = 0; i < loop_.inner(); ++i) target[i * out_step] = source[i * in_step];
        }
      });
    });
  }

 private:
  StridedLoop loop_;
  int64_t from_, to_;
};

int64_t OffsetOf(const std::vector<int64_t>& index, const Strides& strides) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

// Prepares the copy of a block of this shape, from index `from` of `in` to index `to` of `out`.
template <typename T>
StatusOr<BlockCopy<T>> CopyOf(const Shape& shape, const Operand& in,
                              const std::vector<int64_t>& from, const Operand& out,
                              const std::vector<int64_t>& to) {
  const Strides strides[] = {StridesOf(out), StridesOf(in)};
  ASSIGN_OR_RETURN(const StridedLoop loop, StridedLoop::Create(shape, strides));
  return BlockCopy<T>(loop, OffsetOf(from, strides[1]), OffsetOf(to, strides[0]));
}

template <typename T>
class Concat : public Kernel {
 public:
  explicit Concat(std::vector<BlockCopy<T>> copies) : copies_(std::move(copies)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    for (size_t i = 0; i < copies_.size(); ++i)
      copies_[i].Run(static_cast<const T*>(inputs[i]), static_cast<T*>(outputs[0]), stream);
  }

 private:
  std::vector<BlockCopy<T>> copies_;
};

// Copies one block. Before that, sets the output to zeros if the block does not fill it.
template <typename T>
class SliceOrPad : public Kernel {
 public:
  SliceOrPad(const BlockCopy<T>& copy, size_t clear) : copy_(copy), clear_(clear) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    std::memset(outputs[0], 0, clear_);
    copy_.Run(static_cast<const T*>(inputs[0]), static_cast<T*>(outputs[0]), stream);
  }

 private:
  BlockCopy<T> copy_;
  size_t clear_;  // bytes
};

Prepared PrepareConcat(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, std::max<size_t>(1, request.inputs.size()), 1));
  const Operand& out = request.outputs[0];
  const int64_t axis = request.attributes.Get<int64_t>("axis", -1);
  if (axis < 0 || axis >= out.shape.rank()) return InvalidArgument("no axis ", axis);
  std::vector<int64_t> joined = out.shape.dims();
  int64_t& along = joined[static_cast<size_t>(axis)];
  along = 0;
  for (const Operand& input : request.inputs) {
    std::vector<int64_t> dims = out.shape.dims();
    dims[static_cast<size_t>(axis)] =
        input.shape.rank() == out.shape.rank() ? input.shape.dim(static_cast<int>(axis)) : 0;
    RETURN_IF_ERROR(ExpectShape(input, Shape(dims)));
    if (input.dtype != out.dtype) return InvalidArgument("the operands differ in dtype");
    along += dims[static_cast<size_t>(axis)];
  }
  RETURN_IF_ERROR(ExpectShape(out, Shape(joined)));
  return ForSize(out.dtype, [&]<typename T>(Type<T>) -> Prepared {
    std::vector<BlockCopy<T>> copies;
    std::vector<int64_t> to(joined.size(), 0);
    const std::vector<int64_t> from = to;
    for (const Operand& input : request.inputs) {
      ASSIGN_OR_RETURN(const auto copy, CopyOf<T>(input.shape, input, from, out, to));
      copies.push_back(copy);
      to[static_cast<size_t>(axis)] += input.shape.dim(static_cast<int>(axis));
    }
    return Make<Concat<T>>(std::move(copies));
  });
}

// Returns the attribute `name`, a list with one index per axis.
StatusOr<std::vector<int64_t>> IndexOf(const KernelRequest& request, const char* name) {
  const auto* index = request.attributes.Find<std::vector<int64_t>>(name);
  if (index != nullptr && static_cast<int>(index->size()) == request.inputs[0].shape.rank())
    return *index;
  return InvalidArgument("the attribute ", name, " must have one number per axis");
}

// Returns InvalidArgument unless the block `shape` at `index` lies within `operand`.
Status ExpectBlock(const Operand& operand, const std::vector<int64_t>& index, const Shape& shape) {
  bool within = operand.shape.rank() == shape.rank();
  for (size_t d = 0; within && d < index.size(); ++d) {
    const int64_t size = operand.shape.dims()[d];
    within = index[d] >= 0 && index[d] <= size && shape.dims()[d] <= size - index[d];
  }
  if (within) return OkStatus();
  return InvalidArgument(shape.ToString(), " does not lie within ", operand.ToString());
}

Prepared PrepareSlice(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  ASSIGN_OR_RETURN(const std::vector<int64_t> begin, IndexOf(request, "begin"));
  RETURN_IF_ERROR(ExpectBlock(in, begin, out.shape));
  if (in.dtype != out.dtype) return InvalidArgument("the operands differ in dtype");
  return ForSize(in.dtype, [&]<typename T>(Type<T>) -> Prepared {
    const std::vector<int64_t> to(begin.size(), 0);
    ASSIGN_OR_RETURN(const auto copy, CopyOf<T>(out.shape, in, begin, out, to));
    return Make<SliceOrPad<T>>(copy, size_t{0});
  });
}

Prepared PreparePad(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  ASSIGN_OR_RETURN(const std::vector<int64_t> before, IndexOf(request, "before"));
  RETURN_IF_ERROR(ExpectBlock(out, before, in.shape));
  if (in.dtype != out.dtype) return InvalidArgument("the operands differ in dtype");
  return ForSize(in.dtype, [&]<typename T>(Type<T>) -> Prepared {
    const std::vector<int64_t> from(before.size(), 0);
    ASSIGN_OR_RETURN(const auto copy, CopyOf<T>(in.shape, in, from, out, before));
    return Make<SliceOrPad<T>>(copy, out.bytes());
  });
}

}  // namespace

KernelTable::Entries SliceKernels() {
  return {
      {"Concat", {PrepareConcat, {}}}, {"Slice", {PrepareSlice, {}}}, {"Pad", {PreparePad, {}}}};
}

}  // namespace tfjob::kernels::cpu
