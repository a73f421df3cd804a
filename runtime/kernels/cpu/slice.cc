// Implements ops that cut, pad and join tensors.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cpu/strided.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

// Copies a block of one tensor to a block of another.
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

// Prepares the copy of one block.
template <typename T>
StatusOr<BlockCopy<T>> CopyOf(const Block& block, const Operand& in, const Operand& out) {
  const Strides strides[] = {StridesOf(out), StridesOf(in)};
  ASSIGN_OR_RETURN(const StridedLoop loop, StridedLoop::Create(block.shape, strides));
  return BlockCopy<T>(loop, OffsetOf(block.from, strides[1]), OffsetOf(block.to, strides[0]));
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

// Copies a single block. If the block does not fill the output, first sets the output to zeros.
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
  ASSIGN_OR_RETURN(const std::vector<Block> blocks, ConcatBlocks(request));
  const Operand& out = request.outputs[0];
  return ForSize(out.dtype, [&]<typename T>(Type<T>) -> Prepared {
    std::vector<BlockCopy<T>> copies;
    for (size_t i = 0; i < blocks.size(); ++i) {
      ASSIGN_OR_RETURN(const auto copy, CopyOf<T>(blocks[i], request.inputs[i], out));
      copies.push_back(copy);
    }
    return Make<Concat<T>>(std::move(copies));
  });
}

Prepared PrepareSlice(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Block block, SliceBlock(request));
  return ForSize(request.outputs[0].dtype, [&]<typename T>(Type<T>) -> Prepared {
    ASSIGN_OR_RETURN(const auto copy, CopyOf<T>(block, request.inputs[0], request.outputs[0]));
    return Make<SliceOrPad<T>>(copy, size_t{0});
  });
}

Prepared PreparePad(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Block block, PadBlock(request));
  const Operand& out = request.outputs[0];
  return ForSize(out.dtype, [&]<typename T>(Type<T>) -> Prepared {
    ASSIGN_OR_RETURN(const auto copy, CopyOf<T>(block, request.inputs[0], out));
    return Make<SliceOrPad<T>>(copy, out.bytes());
  });
}

}  // namespace

KernelTable::Entries SliceKernels() {
  return {
      {"Concat", {PrepareConcat, {}}}, {"Slice", {PrepareSlice, {}}}, {"Pad", {PreparePad, {}}}};
}

}  // namespace tfjob::kernels::cpu
