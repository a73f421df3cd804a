// Declares one function per op, which appends the op to the builder's graph and returns the op's
// output. Names, argument order and meaning are those of TensorFlow. Binary elementwise ops follow
// NumPy's broadcasting rules. For the attributes of each op, see op.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/graph/builder.h"

namespace tfjob {
struct Window;
}  // namespace tfjob

namespace tfjob::graph {

// Sources. The value of a Placeholder is fed under its name at each run. The name gets no scope
// prefix, and must not be in use.
Output Placeholder(Builder& b, std::string_view name, DType dtype, Shape shape);
Output Const(Builder& b, Tensor value, std::string_view name = "");
// Adds a scalar constant of any type, converted from a double.
Output Scalar(Builder& b, DType dtype, double value);
Output Fill(Builder& b, DType dtype, Shape shape, double value);

// Variables, identified by their names in the task's store.
Output ReadVariable(Builder& b, std::string_view variable, DType dtype, Shape shape);
void Assign(Builder& b, std::string_view variable, Output value);
// A float32 value may be added to a float64 variable.
void AssignAdd(Builder& b, std::string_view variable, Output value);
// Applies one step of an optimizer to a trainable variable. `step` is an int64 scalar, the number
// of steps before this one. `optimizer` contains the "kind" and the hyper-parameters of the
// optimizer (optimizer::ToAttributes).
void ApplyOptimizer(Builder& b, std::string_view variable, Output gradient, Output step,
                    Attributes optimizer);
// Like ApplyOptimizer, but for a matrix whose gradient is zero except in the rows `indices`
// (int64[n], as DeduplicateIndexedSlices returns them). `values` contains these n rows of the
// gradient.
void ApplyOptimizerRows(Builder& b, std::string_view variable, Output indices, Output values,
                        Output step, Attributes optimizer);

// Linear algebra. `x` is [m,k], or [k,m] with transpose_a; `y` is [k,n], or [n,k] with transpose_b.
// m may represent several axes; k may do so if only x is transposed.
Output MatMul(Builder& b, Output x, Output y, bool transpose_a = false, bool transpose_b = false);
// Multiplies the matrices [m,k] and [k,n] in the last two axes of x and y. With adj_x or adj_y, the
// matrices are stored transposed. All other axes are broadcast.
Output BatchMatMul(Builder& b, Output x, Output y, bool adj_x = false, bool adj_y = false);
Output BiasAdd(Builder& b, Output x, Output bias);  // [...,c] + [c]
Output BiasAddGrad(Builder& b, Output dy);          // [...,c] → [c]

// Activations. The arguments of the *Grad ops have the same order as in TensorFlow; `y` is the
// output of the activation.
Output Relu(Builder& b, Output x);
Output ReluGrad(Builder& b, Output dy, Output y);
Output Sigmoid(Builder& b, Output x);
Output SigmoidGrad(Builder& b, Output y, Output dy);
Output Tanh(Builder& b, Output x);
Output TanhGrad(Builder& b, Output y, Output dy);
Output Softmax(Builder& b, Output x);  // over the last axis, like LogSoftmax
Output SoftmaxGrad(Builder& b, Output y, Output dy);
Output LogSoftmax(Builder& b, Output x);

// Losses. `loss` [n] has one value per row, and `backprop` [n,c] is d loss / d logits. The labels
// of the sparse op are classes [n], as int32, int64 or uint8; those of the other op are
// probabilities [n,c].
struct CrossEntropy {
  Output loss;
  Output backprop;
};
CrossEntropy SparseSoftmaxCrossEntropyWithLogits(Builder& b, Output logits, Output labels);
CrossEntropy SoftmaxCrossEntropyWithLogits(Builder& b, Output logits, Output labels);

// Elementwise ops.
Output Add(Builder& b, Output x, Output y);
Output Sub(Builder& b, Output x, Output y);
Output Mul(Builder& b, Output x, Output y);
Output Div(Builder& b, Output x, Output y);
Output Maximum(Builder& b, Output x, Output y);
Output Minimum(Builder& b, Output x, Output y);
Output Pow(Builder& b, Output x, Output y);
Output Equal(Builder& b, Output x, Output y);  // returns bool, like the next three ops
Output Greater(Builder& b, Output x, Output y);
Output GreaterEqual(Builder& b, Output x, Output y);
Output Less(Builder& b, Output x, Output y);
Output Select(Builder& b, Output condition, Output x, Output y);  // condition ? x : y
Output Identity(Builder& b, Output x, std::string_view name = "");
Output Neg(Builder& b, Output x);
Output Exp(Builder& b, Output x);
Output Log(Builder& b, Output x);
Output Erf(Builder& b, Output x);  // 2/√π · the integral of exp(-t²) from 0 to x
Output Sin(Builder& b, Output x);
Output Cos(Builder& b, Output x);
Output Square(Builder& b, Output x);
Output Sqrt(Builder& b, Output x);
Output Rsqrt(Builder& b, Output x);  // 1 / sqrt(x)
Output Abs(Builder& b, Output x);
Output ClipByValue(Builder& b, Output x, double low, double high);
Output Cast(Builder& b, Output x, DType dtype);  // returns x itself if it has that type

// Reductions. Empty axes mean all axes. A negative axis counts from the end.
Output Sum(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims = false);
Output Mean(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims = false);
Output Max(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims = false);
Output Min(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims = false);
Output ArgMax(Builder& b, Output x, int axis);  // int64; the first of equal elements

// Shapes. One dimension of Reshape may be -1.
Output Reshape(Builder& b, Output x, Shape shape);
Output Transpose(Builder& b, Output x, std::vector<int64_t> permutation);
Output BroadcastTo(Builder& b, Output x, Shape shape);
inline constexpr int kMostJoined = 1024;
// Joins up to kMostJoined tensors whose shapes differ only along `axis`. A negative axis counts
// from the end.
Output Concat(Builder& b, std::vector<Output> inputs, int64_t axis);
// Returns the block of x that starts at index begin[i], and has size[i] elements, along each axis
// i.
Output Slice(Builder& b, Output x, std::vector<int64_t> begin, std::vector<int64_t> size);
// Adds before[i] zeros before the elements along axis i, and after[i] zeros after them.
Output Pad(Builder& b, Output x, std::vector<int64_t> before, std::vector<int64_t> after);

// Access to rows by index. `indices` is int32 or int64, and may have any shape. Gather selects
// entries of `params` along its first axis, and returns them in the shape [indices…, params' other
// axes]. If an index is negative or too large, the run fails.
Output Gather(Builder& b, Output params, Output indices);
// Sums the rows of `values` [n,d] that have equal indices [n]. Returns the distinct indices in
// ascending order, as int64, and one sum per index. Both are padded to n rows, the indices with -1
// and the sums with zeros.
struct DistinctRows {
  Output indices;  // [n]
  Output values;   // [n,d]
};
DistinctRows DeduplicateIndexedSlices(Builder& b, Output indices, Output values);
// Returns a tensor of `num_segments` rows, in which row i is the sum of the rows of `data` [n,d]
// whose index is i.
Output UnsortedSegmentSum(Builder& b, Output data, Output indices, int64_t num_segments);

// Convolutions and pooling. `image` is [images,height,width,channels], and `filter` is
// [height,width,channels / groups,outputs]. Channels and outputs are divided into groups; an output
// depends only on the channels of its group. The window of a convolution must have the filter's
// height and width.
Output Conv2D(Builder& b, Output image, Output filter, const Window& window);
// Return the gradients of Conv2D with respect to its image and to its filter, which have the given
// shapes.
Output Conv2DBackpropInput(Builder& b, Output filter, Output dy, Shape image, const Window& window);
Output Conv2DBackpropFilter(Builder& b, Output image, Output dy, Shape filter,
                            const Window& window);
// Apply pooling. The window must not have a dilation. The average does not include padding.
Output MaxPool(Builder& b, Output image, const Window& window);
Output AvgPool(Builder& b, Output image, const Window& window);

// Moves the pixels of images [images,height,width,channels]. Pixel (x, y) of the output is the
// value of the image at ((a0·x + a1·y + a2) / k, (b0·x + b1·y + b2) / k), k = c0·x + c1·y + 1. Row
// i of `transforms` [images,8] contains the coefficients a0, a1, a2, b0, b1, b2, c0 and c1 for
// image i. No gradient flows to the transforms.
struct ImageTransform {
  int64_t height = 0, width = 0;                // size of the output
  std::string_view interpolation = "BILINEAR";  // or "NEAREST"
  // How the image continues outside its borders: "CONSTANT" (fill_value), "REFLECT"
  // (dcba|abcd|dcba), "WRAP" (abcd|abcd|abcd) or "NEAREST" (aaaa|abcd|dddd).
  std::string_view fill_mode = "CONSTANT";
  double fill_value = 0;
};
Output ImageProjectiveTransform(Builder& b, Output images, Output transforms,
                                const ImageTransform& how);

// Normalises each channel of x over all other axes:
// y = gamma·(x - mean) / √(variance + epsilon) + beta. gamma, beta, mean and variance are
// [channels].
struct BatchNorm {
  Output y;
  Output mean, variance;  // the variance is divided by the number of rows n, not by n - 1
};
BatchNorm FusedBatchNorm(Builder& b, Output x, Output gamma, Output beta, double epsilon);

// Returns the mean of x over the replicas of a step, weighted by their numbers of examples. x is a
// vector of float32 or float64. A replica without examples does not count, but must take part
// (exec/exchange.h). Without other replicas, returns x.
//
// If x is a mean over the examples of the replica, the result is the mean over all examples. The
// gradient assumes that the replicas together minimise the mean of their losses, with the same
// weights.
Output AllReduceMean(Builder& b, Output x);

// Random ops. They are stateless: Philox4x32-10 computes the numbers from (seed, op_id, replica,
// step). `step` and `seed` are int64 scalars that are fed at each run. These functions set the
// attribute op_id, which distinguishes the random ops of a graph. `replica` distinguishes tasks
// that run the graph with the same seed.
Output Dropout(Builder& b, Output x, Output step, Output seed, double rate,
               int64_t replica = 0);  // scales the kept elements by 1 / (1 - rate)
Output RandomUniform(Builder& b, Output step, Output seed, DType dtype, Shape shape, double low,
                     double high);
Output RandomNormal(Builder& b, Output step, Output seed, DType dtype, Shape shape, double mean,
                    double stddev, int64_t replica = 0);
Output TruncatedNormal(Builder& b, Output step, Output seed, DType dtype, Shape shape, double mean,
                       double stddev);

}  // namespace tfjob::graph
