// Computes CTC with the forward recursion, in logarithms. The labels, with a blank before, between
// and after them, are the states of the recursion. A sequence of classes, one per step, stands for
// the labels if it passes through these states in order. Each step stays in its state or moves to
// the next one; it may also skip the blank between two different labels. Blanks and labels are in
// separate tensors: the blank i comes before the label i.
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model::losses {
namespace {

struct CtcStates {
  Output blanks;  // [b,labels + 1]
  Output labels;  // [b,labels]
};

Output FilledWith(Builder& b, Output like, int64_t rows, int64_t columns, double value) {
  return Fill(b, b.dtype(like), Shape({rows, columns}), value);
}

// Returns the numbers from 0 to n - 1, as float32 [n].
Output FloatsBelow(Builder& b, int64_t n) {
  Tensor numbers(DType::kFloat32, Shape({n}));
  std::iota(numbers.data<float>().begin(), numbers.data<float>().end(), 0.0f);
  return Const(b, std::move(numbers));
}

// Returns the logarithms of the labels' probabilities in each step: [steps,b,labels].
Output LogsOfLabels(Builder& b, Output logs, Output labels) {
  const int64_t classes = b.shape(logs).dim(2);
  const Shape shape = b.shape(labels);
  const Output column = Reshape(b, labels, {shape.dim(0), shape.dim(1), 1});
  const Output one_hot = Cast(b, Equal(b, column, FloatsBelow(b, classes)), b.dtype(logs));
  return Transpose(b, BatchMatMul(b, logs, one_hot, false, true), {1, 0, 2});
}

// Returns the logarithms of the blank's probabilities in each step: [steps,b,1].
Output LogsOfBlank(Builder& b, Output logs) {
  const Shape shape = b.shape(logs);
  return Transpose(b, Slice(b, logs, {0, 0, 0}, {shape.dim(0), shape.dim(1), 1}), {1, 0, 2});
}

// Returns [b,labels]: 0 for labels that a step may reach from the label before, and kLogOfZero for
// equal ones, between which there must be a blank, and for the first one.
Output SkipsTo(Builder& b, Output labels) {
  const int64_t rows = b.shape(labels).dim(0), last = b.shape(labels).dim(1) - 1;
  const Output first = FilledWith(b, labels, rows, 1, kLogOfZero);
  if (last == 0) return first;
  const Output same =
      Equal(b, Slice(b, labels, {0, 1}, {rows, last}), Slice(b, labels, {0, 0}, {rows, last}));
  const Output skips = Times(b, Cast(b, same, b.dtype(labels)), kLogOfZero);
  return Concat(b, {first, skips}, 1);
}

// Adds a step of the recursion to the body of the scan. `skips` are those of SkipsTo.
void AddStep(graph::ScanBuilder& scan, CtcStates before, Output log_of_blank, Output logs_of_labels,
             Output skips) {
  Builder& b = scan.body();
  const int64_t rows = b.shape(before.labels).dim(0), labels = b.shape(before.labels).dim(1);
  const Output none = FilledWith(b, before.labels, rows, 1, kLogOfZero);
  const Output label_before = Concat(b, {none, before.labels}, 1);  // for each blank
  const Output blanks = LogSumExp(b, {before.blanks, label_before});
  const Output blank_before = Slice(b, before.blanks, {0, 0}, {rows, labels});
  const Output skipped = Add(b, Slice(b, label_before, {0, 0}, {rows, labels}), skips);
  const Output reached = LogSumExp(b, {before.labels, blank_before, skipped});
  scan.SetNext(0, Add(b, blanks, log_of_blank));
  scan.SetNext(1, Add(b, reached, logs_of_labels));
}

// Returns the logarithms of the probabilities of all states after the last step.
CtcStates Recursion(Builder& b, Output logs, Output labels) {
  const int64_t rows = b.shape(labels).dim(0), count = b.shape(labels).dim(1);
  const Output start = FilledWith(b, logs, rows, 1, 0);
  const Output others = FilledWith(b, logs, rows, count, kLogOfZero);
  graph::ScanBuilder scan(b, b.shape(logs).dim(1));
  const Output blanks = scan.State(Concat(b, {start, others}, 1));
  const Output own = scan.State(others);
  const Output log_of_blank = scan.Sequence(LogsOfBlank(b, logs));
  const Output logs_of_labels = scan.Sequence(LogsOfLabels(b, logs, labels));
  const Output skips = scan.Invariant(SkipsTo(b, labels));
  if (!b.ok() || !scan.body().ok()) return {};
  AddStep(scan, {blanks, own}, log_of_blank, logs_of_labels, skips);
  const graph::ScanBuilder::Results results = scan.Finish();
  return b.ok() ? CtcStates{results.states[0], results.states[1]} : CtcStates();
}

// Returns, for each example, the element of `states` with the given number, as [b], or kLogOfZero
// if there is no such element. `numbers` is [b,1].
Output StateAt(Builder& b, Output states, Output numbers) {
  const Output chosen =
      Cast(b, Equal(b, FloatsBelow(b, b.shape(states).dim(1)), numbers), b.dtype(states));
  const Output missing = OneMinus(b, Sum(b, chosen, {1}));
  return Add(b, Sum(b, Mul(b, states, chosen), {1}), Times(b, missing, kLogOfZero));
}

}  // namespace

Output Ctc(Builder& b, const Loss&, Output p, Output y) {
  const Output labels = Cast(b, y, DType::kFloat32);  // exact for numbers of classes
  const Output lengths = Sum(b, Cast(b, NotEqual(b, y, 0), DType::kFloat32), {1}, true);
  const CtcStates last = Recursion(b, LogSoftmax(b, p), labels);
  if (!b.ok()) return {};
  const Output loss = Neg(b, LogSumExp(b, {StateAt(b, last.blanks, lengths),
                                           StateAt(b, last.labels, Plus(b, lengths, -1))}));
  // No output stands for labels that are too long.
  const Output impossible = Greater(b, loss, Number(b, loss, -kLogOfZero / 2));
  return Select(b, impossible, Number(b, loss, std::numeric_limits<double>::infinity()), loss);
}

}  // namespace tfjob::model::losses
