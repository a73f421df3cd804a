// Declares the parameters of the kernels. Both nvcc and the host's compiler read this header, so
// the structs contain only pointers and numbers of fixed sizes. All pointers are to device memory,
// and strides are in elements.
#pragma once

#include <cstdint>

#include "runtime/kernels/cuda/float_type.h"
#include "runtime/kernels/cuda/update_parameters.h"

namespace tfjob::kernels::cuda {

// Elementwise runs a program of steps for each element of a matrix (ops.md, "FusedElementwise").
// Each thread computes four elements. The result of a step is available to the next step. A result
// that a later step needs is kept in a slot in shared memory. ElementwiseWithSlots runs the
// programs that need slots, and ElementwiseWithDropout those that contain kDropout.
inline constexpr int kElementThreads = 128;
inline constexpr int kElementsPerBlock = 4 * kElementThreads;
inline constexpr int kElementInputs = 8;
inline constexpr int kElementSteps = 24;
// The largest number of results that a program keeps at a time. This number suffices for
// kElementSteps steps with up to three operands, if every result is used.
inline constexpr int kElementSlots = 16;

// The ops of a step, in the order of kElementOps in element_program.h.
enum class ElementOp : int32_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMaximum,
  kMinimum,
  kPow,
  kNeg,
  kAbs,
  kSquare,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kErf,
  kSin,
  kCos,
  kRelu,
  kSigmoid,
  kTanh,
  kReluGrad,
  kSigmoidGrad,
  kTanhGrad,
  kClip,
  kCopy,
  kDropout
};

// The random words of an op, which are a stream (random_stream.h).
struct RandomWords {
  const int64_t* step;
  const int64_t* seed;
  uint32_t op_id, replica;
};

// The place from which a step reads an operand. A step with kDropout has one operand. In place of
// the others, source[1] contains its op_id (`index`) and the factor of kept elements (`literal`),
// and source[2] the smallest word that keeps an element (`index`).
struct ElementSource {
  enum Kind : int32_t { kInput, kSlot, kLast, kLiteral };
  Kind kind;
  int32_t index;  // of the input or the slot
  float literal;
};
struct ElementStep {
  ElementOp op;
  int32_t keep;  // the slot for the result; -1: none
  ElementSource source[3];
};
struct ElementInput {
  const void* data;
  int64_t row_stride;   // 0: every row is the same
  int32_t column_step;  // 0: every column is the same
  FloatType type;
};
struct ElementwiseParameter {
  void* out;
  int64_t out_stride;
  ElementInput input[kElementInputs];
  uint32_t count, cols;  // elements in total, and per row
  // 1: each thread computes four consecutive elements. Every operand that does not repeat one
  // element stores these four elements at an address that is a multiple of their size. 0:
  // consecutive threads compute consecutive elements.
  int32_t vectors;
  FloatType out_type;
  int32_t steps;
  ElementStep step[kElementSteps];
  const int64_t* refusal;  // if its first number is not 0, the kernel does nothing; may be null
  RandomWords words;       // of kDropout, except for op_id
};

// How SumColumns and SumRows combine elements.
enum class ReduceOp : int32_t { kSum, kMax, kMin };

// SumColumns sums the rows of a matrix in parts of kSumRows rows: out[part, c] is `scale` times the
// sum of in[r, c] over the rows r of that part. A block sums 32 columns of one part. Further
// launches add up the sums of the parts. Depending on `op`, SumColumns computes the maximum or the
// minimum instead of the sum.
inline constexpr int kSumWarps = 8;
inline constexpr int kSumRows = 256;
struct SumColumnsParameter {
  const void* in;
  void* out;  // [parts, cols]
  FloatType in_type, out_type;
  int64_t in_stride, rows;
  int32_t cols;
  float scale;
  ReduceOp op;
};

// SumRows sums the columns of a matrix in parts of kSumColumns columns: out[r, part] is `scale`
// times the sum of in[r, c] over the columns c of that part. A block sums one part of one row.
// Further launches add up the sums of the parts. Like SumColumns, SumRows may compute the maximum
// or the minimum instead. SumShortRows does the same for up to kShortRow columns, which form a
// single part; each warp sums one row.
inline constexpr int kSumThreads = 256;
inline constexpr int kSumColumns = 8192;
inline constexpr int kShortRow = 1024;
struct SumRowsParameter {
  const void* in;
  void* out;  // [rows, parts]
  FloatType in_type, out_type;
  int64_t in_stride, cols;
  uint32_t rows;
  int32_t parts;
  float scale;
  ReduceOp op;
};

// Softmax, SoftmaxGrad and the cross-entropies compute one row per block. All floats are stored as
// `type`.
inline constexpr int kSoftmaxThreads = 128;
struct SoftmaxParameter {
  const void* x;
  void* y;  // may be x
  int64_t x_stride, y_stride;
  int32_t cols;
  int32_t logarithm;  // 1: LogSoftmax
  FloatType type;
};
struct SoftmaxGradParameter {
  const void* y;
  const void* dy;
  void* dx;  // may be y or dy
  int64_t y_stride, dy_stride, dx_stride;
  int32_t cols;
  FloatType type;
};
struct SparseCrossEntropyParameter {
  const void* logits;
  const void* labels;  // integers of label_bytes bytes: int64, int32 or uint8
  void* loss;          // [rows]
  void* backprop;      // may be logits
  int64_t logits_stride, backprop_stride;
  int32_t cols, label_bytes;
  FloatType type;
};

struct DenseCrossEntropyParameter {
  const void* logits;
  const void* labels;
  void* loss;      // [rows]
  void* backprop;  // may be logits or labels
  int64_t logits_stride, labels_stride, backprop_stride;
  int32_t cols;
  FloatType type;
};

// Dropout, RandomUniform and RandomNormal: each thread draws one block of four words.
inline constexpr int kRandomThreads = 256;
struct DropoutParameter {
  RandomWords words;
  const void* x;
  void* y;  // may be x
  int64_t x_stride, y_stride;
  uint32_t count, cols;
  uint32_t threshold;  // the smallest word that keeps an element
  float scale;
  FloatType type;
};
struct RandomUniformParameter {
  RandomWords words;
  float* y;
  int64_t y_stride;
  uint32_t count, cols;
  float low, high, last;  // `last` is the largest number below `high`
};
struct RandomNormalParameter {
  RandomWords words;
  float* y;
  int64_t y_stride;
  uint32_t count, cols;
  float mean, stddev;
  int32_t truncated;  // 1: to two standard deviations
};

// Cast converts each element. AddToDoubles adds floats to doubles, and does not read the types.
inline constexpr int kCastThreads = 256;
enum class CastType : int32_t {
  kFloat32,
  kFloat64,
  kInt32,
  kInt64,
  kUInt8,
  kBool,
  kBFloat16,
  kFloat16
};
struct CastParameter {
  const void* in;
  void* out;
  int64_t in_stride, out_stride;
  uint32_t count;
  uint32_t in_cols, out_cols;  // elements per row
  CastType from, to;
  const int64_t* refusal;  // if its first number is not 0, the kernel does nothing; may be null
};

// Nested loops over the elements of tensors, from the outermost to the innermost. Neighbouring axes
// may have been joined.
inline constexpr int kLoopRank = 8;
struct Loops {
  uint32_t count;  // elements
  int32_t rank;    // at least 1
  uint32_t size[kLoopRank];
};

// Move copies a block of elements to another layout. Along each axis, the input covers the indices
// [first, first + covered) of the block. All other elements of the output become zero.
inline constexpr int kMoveThreads = 256;
struct MoveParameter {
  const void* in;
  void* out;
  Loops loops;
  int64_t in_stride[kLoopRank], out_stride[kLoopRank];
  uint32_t first[kLoopRank], covered[kLoopRank];
  int32_t bytes;  // of an element: 1, 2, 4 or 8
};

// Transpose copies matrices whose rows are contiguous in the input, and whose columns are
// contiguous in the output. A block copies a tile of kTile rows and kTile columns. The loops are
// over the matrices.
inline constexpr int kTile = 32;
inline constexpr int kTileThreads = 8;  // along the second axis of a block
struct TransposeParameter {
  const void* in;
  void* out;
  Loops loops;
  int64_t in_stride[kLoopRank], out_stride[kLoopRank];
  int64_t in_row_stride;      // between the rows of a matrix in the input
  int64_t out_column_stride;  // between the columns of a matrix in the output
  uint32_t rows, cols;        // of a matrix in the input
  uint32_t row_tiles, col_tiles;
  int32_t bytes;  // of an element: 1, 2, 4 or 8
};

// Fill sets each element to `value`.
inline constexpr int kFillThreads = 256;
struct FillParameter {
  void* out;
  int64_t out_stride;
  uint64_t value;  // its first `bytes` bytes
  uint32_t count, cols;
  int32_t bytes;  // of an element: 1, 2, 4 or 8
};

// Compare and Select broadcast their operands.
inline constexpr int kSelectThreads = 256;
enum class CompareOp : int32_t { kEqual, kGreater, kGreaterEqual, kLess };
struct CompareParameter {
  const void* a;
  const void* b;
  bool* out;
  Loops loops;
  int64_t a_stride[kLoopRank], b_stride[kLoopRank], out_stride[kLoopRank];
  CompareOp op;
  CastType type;  // of the operands
};
struct SelectParameter {
  const bool* condition;
  const void* a;
  const void* b;
  void* out;
  Loops loops;
  int64_t condition_stride[kLoopRank], a_stride[kLoopRank], b_stride[kLoopRank];
  int64_t out_stride[kLoopRank];
  int32_t bytes;  // of an element of a, b and out: 1, 2, 4 or 8
};

// ArgMax finds, for each element of the output, the largest of `count` elements of the input, which
// are `step` elements apart. ArgMaxRows does the same with one warp per element of the output.
inline constexpr int kArgMaxThreads = 256;
struct ArgMaxParameter {
  const void* in;
  int64_t* out;
  Loops loops;  // over the output
  int64_t in_stride[kLoopRank], out_stride[kLoopRank];
  int64_t count, step;
  FloatType type;
};

// CheckIds reports the first id that is not the index of a row of the table. It runs as a single
// block.
inline constexpr int kCheckThreads = 256;
struct CheckIdsParameter {
  const void* ids;   // integers of id_bytes bytes: int64 or int32
  int64_t* refusal;  // a Refusal (stream.h), as three numbers
  int64_t number;    // Refusal::number of this kernel's refusals
  int64_t rows;
  uint32_t count;
  int32_t id_bytes;
};

// FindNotFinite finds the first element in each block of elements that is NaN or infinite.
// RefuseNotFinite, which runs as a single block, reports the first of these elements.
inline constexpr int kNumberThreads = 256;
inline constexpr int kNumbersPerThread = 8;
struct CheckNumbersParameter {
  const void* in;
  uint32_t* found;   // per block: the element's index, or 2^32 - 1
  int64_t* refusal;  // a Refusal (stream.h), as three numbers
  int64_t number;    // Refusal::number of this kernel's refusals
  int64_t in_stride;
  uint32_t count, cols, blocks;
  FloatType type;
};

// Gather copies the rows with these ids. If a row does not exist, Gather writes zeros.
inline constexpr int kGatherThreads = 256;
struct GatherParameter {
  const void* table;
  const void* ids;
  void* out;
  int64_t table_stride, out_stride;  // in units
  int64_t rows;
  uint32_t count, cols;  // units in the output, and per row
  int32_t id_bytes;
  int32_t bytes;  // of a unit: 1, 2, 4, 8 or 16
};

// SortIds sorts parts of kSortThreads ids, and MergeIds merges neighbouring parts of `part` ids.
// The positions of equal ids remain in ascending order.
inline constexpr int kSortThreads = 512;  // a power of two
struct SortIdsParameter {
  const void* ids;
  int64_t* sorted;
  uint32_t* positions;
  uint32_t count;
  int32_t id_bytes;
};
inline constexpr int kMergeThreads = 256;
struct MergeIdsParameter {
  const int64_t* ids;
  const uint32_t* positions;
  int64_t* merged;
  uint32_t* merged_positions;
  int64_t count, part;
};

// NumberIds numbers the distinct ids of a sorted list. It runs as a single block.
struct NumberIdsParameter {
  const int64_t* ids;
  uint32_t* numbers;  // per id, its index among the distinct ids
  int64_t* distinct;  // the distinct ids, followed by -1; null: not needed
  uint32_t* distinct_count;
  uint32_t count;
};

// SumGroups sums the rows of `values` whose ids are equal. A warp sums 32 columns of the rows at
// kGroupPlaces places of the sorted list. If a group has places in several parts of the list, the
// sum over the first part is stored in `begun` and the other sums in `continued`, and JoinGroups
// adds them.
inline constexpr int kGroupPlaces = 64;
inline constexpr int kGroupWarps = 4;
struct SumGroupsParameter {
  const int64_t* ids;
  const uint32_t* positions;
  const uint32_t* numbers;
  const uint32_t* distinct_count;
  const void* values;
  void* out;
  float* begun;      // [parts, cols]
  float* continued;  // [parts, cols]
  int64_t values_stride, out_stride;
  int64_t rows;  // of the output, if indexed by id; 0: indexed by number
  uint32_t count, cols;
  FloatType type;  // of `values` and `out`
};

}  // namespace tfjob::kernels::cuda
