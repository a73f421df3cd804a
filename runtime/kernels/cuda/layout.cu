// Moves elements of any dtype to another layout, and fills tensors.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/loops.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// The position from which an element of a block is read, and the one to which it is written. If the
// input does not cover the element, `from` is meaningless.
struct Way {
  int64_t from, to;
  bool covered;
};

TFJOB_DEVICE Way WayOf(const MoveParameter& p, uint32_t element) {
  Way way{0, 0, true};
  for (int axis = p.loops.rank - 1; axis >= 0; --axis) {
    const uint32_t outer = axis == 0 ? 0 : element / p.loops.size[axis];
    const uint32_t index = element - outer * p.loops.size[axis];
    const uint32_t at = index - p.first[axis];  // if the index is below `first`, a large number
    way.covered = way.covered && at < p.covered[axis];
    way.from += at * p.in_stride[axis];
    way.to += index * p.out_stride[axis];
    element = outer;
  }
  return way;
}

template <typename T>
TFJOB_DEVICE void MoveElement(const MoveParameter& p, const Way& way) {
  static_cast<T*>(p.out)[way.to] =
      way.covered ? static_cast<const T*>(p.in)[way.from] : static_cast<T>(0);
}

// The index of a tile, and the matrix that it belongs to.
struct Tile {
  uint32_t row, col, matrix;
};

TFJOB_DEVICE Tile TileOfBlock(const TransposeParameter& p) {
  const uint32_t rest = blockIdx.x / p.col_tiles;
  return {rest % p.row_tiles, blockIdx.x % p.col_tiles, rest / p.row_tiles};
}

// Copies a tile. In shared memory, the tile has an additional, unused column, so that the elements
// of a column are in different banks.
template <typename T, typename Stored>
TFJOB_DEVICE void MoveTile(const TransposeParameter& p, Stored (*stored)[kTile + 1]) {
  const Tile tile = TileOfBlock(p);
  const Offsets4 matrix =
      OffsetsOf(p.loops, {p.in_stride, p.out_stride, nullptr, nullptr}, tile.matrix);
  const T* const in = static_cast<const T*>(p.in) + matrix.a;
  T* const out = static_cast<T*>(p.out) + matrix.b;
  const uint32_t first_row = tile.row * kTile, first_col = tile.col * kTile;
  for (uint32_t i = threadIdx.y; i < kTile; i += kTileThreads) {
    const uint32_t row = first_row + i, col = first_col + threadIdx.x;
    if (row < p.rows && col < p.cols) stored[i][threadIdx.x] = in[row * p.in_row_stride + col];
  }
  __syncthreads();
  for (uint32_t i = threadIdx.y; i < kTile; i += kTileThreads) {
    const uint32_t row = first_row + threadIdx.x, col = first_col + i;
    if (row < p.rows && col < p.cols)
      out[col * p.out_column_stride + row] = static_cast<T>(stored[threadIdx.x][i]);
  }
}

}  // namespace

TFJOB_KERNEL(Move, MoveParameter, kMoveThreads) {
  const uint32_t element = blockIdx.x * kMoveThreads + threadIdx.x;
  if (element >= p.loops.count) return;
  const Way way = WayOf(p, element);
  if (p.bytes == 1) return MoveElement<uint8_t>(p, way);
  if (p.bytes == 2) return MoveElement<uint16_t>(p, way);
  if (p.bytes == 4) return MoveElement<uint32_t>(p, way);
  MoveElement<uint64_t>(p, way);
}

TFJOB_KERNEL(Transpose, TransposeParameter, kTile* kTileThreads) {
  __shared__ uint32_t words[kTile][kTile + 1];
  __shared__ uint64_t long_words[kTile][kTile + 1];
  if (p.bytes == 1) return MoveTile<uint8_t>(p, words);
  if (p.bytes == 2) return MoveTile<uint16_t>(p, words);
  if (p.bytes == 4) return MoveTile<uint32_t>(p, words);
  MoveTile<uint64_t>(p, long_words);
}

TFJOB_KERNEL(Fill, FillParameter, kFillThreads) {
  const uint32_t element = blockIdx.x * kFillThreads + threadIdx.x;
  if (element >= p.count) return;
  const uint32_t row = element / p.cols;
  const int64_t to = row * p.out_stride + (element - row * p.cols);
  if (p.bytes == 1) {
    static_cast<uint8_t*>(p.out)[to] = static_cast<uint8_t>(p.value);
  } else if (p.bytes == 2) {
    static_cast<uint16_t*>(p.out)[to] = static_cast<uint16_t>(p.value);
  } else if (p.bytes == 4) {
    static_cast<uint32_t*>(p.out)[to] = static_cast<uint32_t>(p.value);
  } else {
    static_cast<uint64_t*>(p.out)[to] = p.value;
  }
}

}  // namespace tfjob::kernels::cuda
