// Defines the op Scan, a loop over the first axis of tensors, as in JAX and ONNX. Its body is a
// graph, which runs once per step:
//
//   inputs:  states     the states before the first step
//            sequences  [steps, …]; the body receives one element per step
//            invariants the same in all steps, such as weights
//   outputs: states     the states after the last step
//            outputs    [steps, …], the values that the body computed in each step
//
// The body's placeholders are called "state_0", "sequence_0", "invariant_0", …, and its fetches
// "state_0" and "output_0", …. A body reads and writes no variables. A random op in the body
// returns the same numbers in each step, unless its operand `step` is an element of a sequence.
//
// A sequence or an output may be reversed: step t then reads or writes element steps - 1 - t. This
// way, a recurrence can process a sequence from its end to its start.
//
// Attributes: body (a graph), steps, states and sequences (the number of each) and reversed (0 or 1
// for each sequence, then for each output).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/graph.h"

namespace tfjob::graph {

// Return the names of the body's placeholders and fetches.
std::string StateName(int index);
std::string SequenceName(int index);
std::string InvariantName(int index);
std::string OutputName(int index);

// Contains the parsed and checked attributes of a Scan.
struct ScanForm {
  const Graph* body = nullptr;  // owned by the attribute
  int64_t steps = 0;
  int states = 0;
  int sequences = 0;
  int outputs = 0;
  std::vector<bool> reversed_sequences;
  std::vector<bool> reversed_outputs;
};
StatusOr<ScanForm> ScanFormOf(const Attributes& attributes);

// Builds a Scan part by part:
//
//   ScanBuilder scan(b, steps);
//   const Output x = scan.Sequence(xs);       // values of the body
//   const Output sum = scan.State(zeros);
//   const Output next = Add(scan.body(), sum, x);
//   scan.SetNext(0, next);
//   scan.Stack(next);
//   const ScanBuilder::Results sums = scan.Finish();
//
// Reports errors to the outer builder.
class ScanBuilder {
 public:
  struct Results {
    std::vector<Output> states;
    std::vector<Output> outputs;
  };

  ScanBuilder(Builder& outer, int64_t steps) : outer_(outer), steps_(steps) {
    body_.ShareOpIds(outer);
  }

  Builder& body() { return body_; }
  Builder& outer() { return outer_; }

  // Add an input to the Scan, and return the value of the input in the body.
  Output State(Output initial);
  Output Sequence(Output value, bool reversed = false);
  Output Invariant(Output value);
  // Sets the value that a state has after a step. Must be called for every state, with a value of
  // the state's type.
  void SetNext(int state, Output value);
  // Adds an output. Returns its index.
  int Stack(Output value, bool reversed = false);

  Results Finish();

 private:
  Output Feed(const std::string& name, const TensorType& type);

  Builder& outer_;
  int64_t steps_;
  Builder body_;
  std::vector<Output> states_, sequences_, invariants_;  // values of the outer graph
  std::vector<Output> next_, stacked_;                   // values of the body
  std::vector<int64_t> reversed_sequences_, reversed_outputs_;
};

}  // namespace tfjob::graph
