// Implements the host's side of layout.cu: ops that cut, join, pad, permute and repeat tensors.
#include <algorithm>
#include <cstring>

#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/loops_of.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/tensor/half.h"

namespace tfjob::kernels::cuda {
namespace {

using cpu::StridedLoop;
using cpu::Strides;

// Copies a block of each input to a block of the output.
class MoveKernel final : public Kernel {
 public:
  MoveKernel(Launcher launcher, std::vector<BlockMove> moves)
      : launcher_(std::move(launcher)), moves_(std::move(moves)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    for (size_t i = 0; i < moves_.size(); ++i)
      SubmitMove(launcher_, moves_[i], inputs[i], outputs[0], stream);
  }

 private:
  const Launcher launcher_;
  const std::vector<BlockMove> moves_;
};

Prepared MakeMove(const Launcher& launcher, const BlockMove& move) {
  return std::make_unique<MoveKernel>(launcher, std::vector<BlockMove>{move});
}

class TransposeKernel final : public Kernel {
 public:
  TransposeKernel(Launcher launcher, const TransposeParameter& parameter)
      : launcher_(std::move(launcher)), parameter_(parameter) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    TransposeParameter p = parameter_;
    p.in = inputs[0];
    p.out = outputs[0];
    Submit(launcher_, "Transpose", {p.row_tiles * p.col_tiles * p.loops.count},
           {kTile, kTileThreads}, p, stream);
  }

 private:
  const Launcher launcher_;
  const TransposeParameter parameter_;
};

class FillKernel final : public Kernel {
 public:
  FillKernel(Launcher launcher, const FillParameter& parameter)
      : launcher_(std::move(launcher)), parameter_(parameter) {}

  void Run(const void* const*, void* const* outputs, void*, Stream& stream) override {
    FillParameter p = parameter_;
    p.out = outputs[0];
    Submit(launcher_, "Fill", {Blocks(p.count, kFillThreads)}, {kFillThreads}, p, stream);
  }

 private:
  const Launcher launcher_;
  const FillParameter parameter_;
};

Status ExpectSameDtype(const Operand& in, const Operand& out) {
  if (in.dtype != out.dtype) return InvalidArgument("the operands differ in dtype");
  return OkStatus();
}

// Returns the move that copies a block.
StatusOr<BlockMove> MoveOf(const cpu::Block& block, const Operand& in, const Operand& out) {
  RETURN_IF_ERROR(CheckCount(Operand::Dense(in.dtype, block.shape)));
  const Strides strides[] = {cpu::StridesOf(out), cpu::StridesOf(in)};
  ASSIGN_OR_RETURN(const StridedLoop loop, StridedLoop::Create(block.shape, strides));
  const auto size = static_cast<int64_t>(SizeOf(in.dtype));
  return BlockMove{.parameter = WholeMove(loop, in.dtype),
                   .in_offset = cpu::OffsetOf(block.from, strides[1]) * size,
                   .out_offset = cpu::OffsetOf(block.to, strides[0]) * size};
}

Prepared PrepareConcat(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const std::vector<cpu::Block> blocks, cpu::ConcatBlocks(request));
  std::vector<BlockMove> moves;
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSIGN_OR_RETURN(moves.emplace_back(),
                     MoveOf(blocks[i], request.inputs[i], request.outputs[0]));
  }
  return std::make_unique<MoveKernel>(launcher, std::move(moves));
}

Prepared PrepareSlice(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const cpu::Block block, cpu::SliceBlock(request));
  ASSIGN_OR_RETURN(const BlockMove move, MoveOf(block, request.inputs[0], request.outputs[0]));
  return MakeMove(launcher, move);
}

// The loops are over the axes of the output, which are not joined.
Prepared PreparePad(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const cpu::Block block, cpu::PadBlock(request));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(CheckCount(out));
  const int rank = out.shape.rank();
  if (rank == 0) return PrepareCopy(launcher, in, out);
  if (rank > kLoopRank) return Unimplemented("more than ", kLoopRank, " dimensions");
  const Strides from = cpu::StridesOf(in), to = cpu::StridesOf(out);
  MoveParameter p{.bytes = MovedBytes(in.dtype)};
  p.loops = {static_cast<uint32_t>(out.shape.num_elements()), rank, {}};
  for (int axis = 0; axis < rank; ++axis) {
    p.loops.size[axis] = static_cast<uint32_t>(out.shape.dim(axis));
    p.in_stride[axis] = from[static_cast<size_t>(axis)];
    p.out_stride[axis] = to[static_cast<size_t>(axis)];
    p.first[axis] = static_cast<uint32_t>(block.to[static_cast<size_t>(axis)]);
    p.covered[axis] = static_cast<uint32_t>(in.shape.dim(axis));
  }
  return MakeMove(launcher, {p, 0, 0});
}

// Returns the input's strides in the order of the output's axes.
StatusOr<Strides> PermutedStrides(const KernelRequest& request) {
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  const int rank = in.shape.rank();
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  for (int axis = 0; axis < rank; ++axis) perm[static_cast<size_t>(axis)] = rank - 1 - axis;
  perm = request.attributes.Get("perm", perm);
  std::vector<int64_t> sorted = perm, dims;
  std::ranges::sort(sorted);
  if (rank > kLoopRank) return Unimplemented("more than ", kLoopRank, " dimensions");
  bool valid = sorted.size() == static_cast<size_t>(rank);
  for (size_t axis = 0; valid && axis < sorted.size(); ++axis)
    valid = sorted[axis] == static_cast<int64_t>(axis);
  if (!valid) return InvalidArgument("perm must name each of the ", rank, " dimensions once");
  const Strides own = cpu::StridesOf(in);
  Strides strides{};
  for (size_t axis = 0; axis < perm.size(); ++axis) {
    strides[axis] = own[static_cast<size_t>(perm[axis])];
    dims.push_back(in.shape.dim(static_cast<int>(perm[axis])));
  }
  RETURN_IF_ERROR(cpu::ExpectShape(out, Shape(dims)));
  return strides;
}

// Operand 0 of the loop is the output, and operand 1 is the input. The input's elements are
// contiguous along `axis`.
TransposeParameter TransposeOf(const StridedLoop& loop, int axis, DType dtype) {
  const int last = loop.rank() - 1;
  TransposeParameter p{.bytes = MovedBytes(dtype)};
  p.loops = {1, 1, {1}};
  for (int d = 0, rank = 0; d < last; ++d) {
    if (d == axis) continue;
    p.loops.size[rank] = static_cast<uint32_t>(loop.size(d));
    p.loops.count *= p.loops.size[rank];
    p.out_stride[rank] = loop.stride(0, d);
    p.in_stride[rank] = loop.stride(1, d);
    p.loops.rank = ++rank;
  }
  p.in_row_stride = loop.stride(1, last);
  p.out_column_stride = loop.stride(0, axis);
  p.rows = static_cast<uint32_t>(loop.size(last));
  p.cols = static_cast<uint32_t>(loop.size(axis));
  p.row_tiles = Blocks(p.rows, kTile);
  p.col_tiles = Blocks(p.cols, kTile);
  return p;
}

// Prepares the fast kernel for elementwise programs if it supports the layout.
Prepared PrepareBroadcastTo(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(ExpectSameDtype(in, out));
  RETURN_IF_ERROR(CheckCount(out));
  if (FloatTypeOf(in.dtype).ok() && HasElementLayout(in, out))
    return PrepareProgram(launcher, request.inputs, out, "Copy i0");
  ASSIGN_OR_RETURN(const BlockMove move, BroadcastMove(in, out));
  return MakeMove(launcher, move);
}

template <typename T>
uint64_t BitsOf(double number) {
  const T value = static_cast<T>(number);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

StatusOr<uint64_t> BitsOf(DType dtype, double number) {
  switch (dtype) {
    case DType::kFloat32:
      return BitsOf<float>(number);
    case DType::kFloat64:
      return BitsOf<double>(number);
    case DType::kInt32:
      return BitsOf<int32_t>(number);
    case DType::kInt64:
      return BitsOf<int64_t>(number);
    case DType::kUInt8:
      return BitsOf<uint8_t>(number);
    case DType::kBool:
      return BitsOf<bool>(number);
    case DType::kBFloat16:
      return BitsOf<BFloat16>(number);
    case DType::kFloat16:
      return BitsOf<Float16>(number);
    default:
      return cpu::NoKernelFor(dtype);
  }
}

}  // namespace

Prepared PrepareTranspose(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(ExpectSameDtype(in, out));
  RETURN_IF_ERROR(CheckCount(out));
  ASSIGN_OR_RETURN(const Strides permuted, PermutedStrides(request));
  const Strides strides[] = {cpu::StridesOf(out), permuted};
  ASSIGN_OR_RETURN(const StridedLoop loop, StridedLoop::Create(out.shape, strides));
  const int last = loop.rank() - 1;
  // Use tiles if the output is contiguous along the last axis, but the input is contiguous along
  // another axis.
  const bool tiles = last >= 0 && loop.stride(0, last) == 1 && loop.stride(1, last) != 1;
  for (int axis = 0; axis < last && tiles; ++axis) {
    if (loop.stride(1, axis) != 1) continue;
    return std::make_unique<TransposeKernel>(launcher, TransposeOf(loop, axis, in.dtype));
  }
  return MakeMove(launcher, {WholeMove(loop, in.dtype), 0, 0});
}

Prepared PrepareFill(const Launcher& launcher, const Operand& out, double value) {
  RETURN_IF_ERROR(CheckCount(out));
  ASSIGN_OR_RETURN(const uint64_t bits, BitsOf(out.dtype, value));
  const FillParameter parameter{.out = nullptr,
                                .out_stride = out.row_stride,
                                .value = bits,
                                .count = static_cast<uint32_t>(out.shape.num_elements()),
                                .cols = static_cast<uint32_t>(out.cols()),
                                .bytes = MovedBytes(out.dtype)};
  return std::make_unique<FillKernel>(launcher, parameter);
}

KernelTable::Entries LayoutKernels(const Launcher& launcher) {
  const auto with = [&launcher](auto prepare) {
    return [launcher, prepare](const KernelRequest& r) { return prepare(launcher, r); };
  };
  const auto fill = [](const Launcher& l, const KernelRequest& request) -> Prepared {
    RETURN_IF_ERROR(cpu::ExpectOperands(request, 0, 1));
    return PrepareFill(l, request.outputs[0], cpu::NumberOf(request.attributes, "value", 0));
  };
  return {{"Concat", {with(PrepareConcat), {}}},
          {"Slice", {with(PrepareSlice), {}}},
          {"Pad", {with(PreparePad), {}}},
          {"Transpose", {with(PrepareTranspose), {}}},
          {"BroadcastTo", {with(PrepareBroadcastTo), {}}},
          {"Fill", {with(fill), {}}}};
}

}  // namespace tfjob::kernels::cuda
