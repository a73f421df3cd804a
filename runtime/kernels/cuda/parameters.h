// Declares the parameters of the kernels. Both nvcc and the host's compiler read this header, so
// the structs contain only pointers and numbers of a fixed size. All pointers are to device memory,
// and strides are in elements.
#pragma once

#include <cstdint>

namespace tfjob::kernels::cuda {

// ApplyAdam and ApplySgd update many variables in one launch: a block updates kUpdateChunk elements
// of one variable. If there are more than kUpdateTensors variables, the others need further
// launches.
inline constexpr int kUpdateTensors = 32;
inline constexpr int kUpdateThreads = 256;
inline constexpr int kUpdateChunk = kUpdateThreads * 4 * 4;

// A variable with its gradient and slots, all of them contiguous. The update is fastest if all
// their addresses are multiples of 16.
struct UpdateTensor {
  float* variable;
  const float* gradient;
  float* first;   // Adam's m, or SGD's momentum; null: none
  float* second;  // Adam's v; null: none
  int64_t count;  // elements
};

struct UpdateTensors {
  UpdateTensor tensor[kUpdateTensors];
  int32_t first_block[kUpdateTensors + 1];  // per tensor; then the number of blocks
  int32_t tensors;
};

// Keras 3's Adam (optimizer/optimizer.h). `step` is in device memory, so that each replay of a
// captured launch reads its current value. The host computes the coefficients in double precision:
// in single precision, 1 - beta would have few correct digits for a beta close to 1.
struct AdamParameter {
  UpdateTensors update;
  const int64_t* step;  // the number of updates before this one
  float learning_rate, epsilon;
  float take_1, take_2;          // 1 - beta_1, 1 - beta_2
  float log_beta_1, log_beta_2;  // natural logarithms
};

// Keras 3's SGD. With momentum, every tensor has a `first`.
struct SgdParameter {
  UpdateTensors update;
  float learning_rate, momentum;
  int32_t nesterov;
};

// Elementwise runs a program of steps for each element of a matrix (ops.md, "FusedElementwise"). A
// thread computes four elements. The result of a step is available to the next step; a result that
// a later step needs is kept in a slot in shared memory. Programs with slots are run by
// ElementwiseWithSlots.
inline constexpr int kElementThreads = 128;
inline constexpr int kElementsPerBlock = 4 * kElementThreads;
inline constexpr int kElementInputs = 8;
inline constexpr int kElementSteps = 24;
// The number of results that a program keeps at a time. It suffices for kElementSteps steps with up
// to three operands if every result is used.
inline constexpr int kElementSlots = 16;

// In the order of kElementOps in element_program.h.
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
  kRelu,
  kSigmoid,
  kTanh,
  kReluGrad,
  kSigmoidGrad,
  kTanhGrad,
  kClip,
  kCopy
};

// Where a step finds an operand.
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
  const float* data;
  int64_t row_stride;   // 0: every row is the same
  int32_t column_step;  // 0: every column is the same
};
struct ElementwiseParameter {
  float* out;
  int64_t out_stride;
  ElementInput input[kElementInputs];
  uint32_t count, cols;  // elements in total, and per row
  // 1: Each thread computes four consecutive elements. An operand stores them at a multiple of 16
  // bytes, unless it repeats one element.
  // 0: Consecutive threads compute consecutive elements.
  int32_t vectors;
  int32_t steps;
  ElementStep step[kElementSteps];
};

// SumColumns adds the rows of a matrix in parts of kSumRows rows: out[part, c] is the sum of in[r,
// c] over the rows r of that part, times `scale`. A block sums 32 columns of one part. Further
// launches add the parts.
inline constexpr int kSumWarps = 8;
inline constexpr int kSumRows = 256;
struct SumColumnsParameter {
  const float* in;
  float* out;  // [parts, cols]
  int64_t in_stride, rows;
  int32_t cols;
  float scale;
};

// SumRows adds the columns of a matrix in parts of kSumColumns columns: out[r, part] is the sum of
// in[r, c] over the columns c of that part, times `scale`. A block adds one part of one row.
// Further launches add the parts.
inline constexpr int kSumThreads = 256;
inline constexpr int kSumColumns = 8192;
struct SumRowsParameter {
  const float* in;
  float* out;  // [rows, parts]
  int64_t in_stride, cols;
  int32_t parts;
  float scale;
};

// Softmax, SoftmaxGrad and SparseCrossEntropy compute one row per block.
inline constexpr int kSoftmaxThreads = 128;
struct SoftmaxParameter {
  const float* x;
  float* y;  // may be x
  int64_t x_stride, y_stride;
  int32_t cols;
  int32_t logarithm;  // 1: LogSoftmax
};
struct SoftmaxGradParameter {
  const float* y;
  const float* dy;
  float* dx;  // may be y or dy
  int64_t y_stride, dy_stride, dx_stride;
  int32_t cols;
};
struct SparseCrossEntropyParameter {
  const float* logits;
  const void* labels;  // integers of label_bytes bytes: int64, int32 or uint8
  float* loss;         // [rows]
  float* backprop;     // may be logits
  int64_t logits_stride, backprop_stride;
  int32_t cols, label_bytes;
};

// Dropout and RandomUniform draw the words of a stream (random_stream.h). A thread draws one block
// of four words.
inline constexpr int kRandomThreads = 256;
struct RandomWords {
  const int64_t* step;
  const int64_t* seed;
  uint32_t op_id, replica;
};
struct DropoutParameter {
  RandomWords words;
  const float* x;
  float* y;  // may be x
  int64_t x_stride, y_stride;
  uint32_t count, cols;
  uint32_t threshold;  // the smallest word that keeps an element
  float scale;
};
struct RandomUniformParameter {
  RandomWords words;
  float* y;
  int64_t y_stride;
  uint32_t count, cols;
  float low, high, last;  // `last` is the largest number below `high`
};

// Cast converts each element.
inline constexpr int kCastThreads = 256;
enum class CastType : int32_t { kFloat32, kFloat64, kInt32, kInt64, kUInt8, kBool };
struct CastParameter {
  const void* in;
  void* out;
  int64_t in_stride, out_stride;
  uint32_t count;
  uint32_t in_cols, out_cols;  // elements per row
  CastType from, to;
};

}  // namespace tfjob::kernels::cuda
