// Applies the mask of sequences in the loop of a recurrent layer.
#pragma once

#include <vector>

#include "runtime/graph/scan.h"

namespace tfjob::model::layers {

struct StepMask {
  graph::Output mask;  // bool [batch,steps] of the outer graph; invalid if all steps count
  int64_t steps = 0;
  bool go_backwards = false;
  bool zero_output = false;  // the output of a masked step is 0, not that of the previous step
  bool return_sequences = false;
  bool from_zeros = false;  // the first state is 0 before the first step

  // Makes masked steps keep their states. `states` contains the states [batch,…] before a step, and
  // `next` those after the step, the first of which is also the step's output. Returns the output
  // of the step. Sets `last_output` to the state whose final value is the output of the last step,
  // which may be a state that this function adds to the loop and to `next`.
  graph::Output Apply(graph::ScanBuilder& scan, const std::vector<graph::Output>& states,
                      std::vector<graph::Output>& next, size_t& last_output) const;
};

}  // namespace tfjob::model::layers
