#include "runtime/model/layers/step_mask.h"

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {

using graph::Output;

Output StepMask::Apply(graph::ScanBuilder& scan, const std::vector<Output>& states,
                       std::vector<Output>& next, size_t& last_output) const {
  graph::Builder &b = scan.outer(), &body = scan.body();
  const Output computed = next[0];
  last_output = 0;
  if (!mask.valid() || !body.ok()) return computed;
  const Shape state = body.shape(states[0]);
  const Shape expected = {state.dim(0), steps};
  if (b.shape(mask) != expected) {
    return b.Fail(InvalidArgument("expected a mask of shape ", expected.ToString(), ", got ",
                                  b.shape(mask).ToString()));
  }
  std::vector<int64_t> dims(static_cast<size_t>(state.rank()) + 1, 1);
  dims[0] = steps;
  dims[1] = state.dim(0);
  const Output by_step = graph::Reshape(b, Transpose(b, mask, {1, 0}), Shape(std::move(dims)));
  const Output counts = scan.Sequence(by_step, go_backwards);
  for (size_t s = 0; s < next.size(); ++s) next[s] = Select(body, counts, next[s], states[s]);
  // If the first state starts at 0, the repeated output of a masked step equals this state.
  if (!zero_output && from_zeros) return next[0];
  const Output none = Scalar(body, body.dtype(computed), 0);
  if (zero_output && return_sequences) return Select(body, counts, computed, none);
  const Output last = scan.State(Fill(b, body.dtype(computed), state, 0));
  next.push_back(Select(body, counts, computed, zero_output ? none : last));
  last_output = next.size() - 1;
  return next.back();
}

}  // namespace tfjob::model::layers
