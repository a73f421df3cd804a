// Applies layers, such as RandomCrop and RandomFlip, to the examples of a source when a batch is
// read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/data/source.h"
#include "runtime/model/model.h"

namespace tfjob::augment {

struct Options {
  std::string field;    // the name of the field to change, such as model::kFeatures
  model::Model layers;  // one input and one output, no variables
  // Whether layers behave as in training, where random layers change the examples. If not, they
  // behave as in evaluation; for example, RandomCrop resizes the image.
  bool training = true;
  uint64_t seed = 0;
  int threads = 1;  // threads that change examples, including the reading thread
};

// Returns a source in which the field, converted to float32, is replaced with the output of the
// layers. All other fields are unchanged. The random numbers of the layers depend only on the seed,
// the epoch (RowReader::BeginEpoch) and the index of the example, but not on batches, threads or
// tasks.
//
// The layers run on the CPU, for one example at a time, on at most 512 threads, each of which has a
// program. A reader has memory for the original examples of a batch, which it allocates again if a
// batch is larger than all previous batches. As for models, a last axis of length 1 may be missing
// from the field. Returns InvalidArgument if the source has no such field, or if the layers are
// incompatible with the field, have variables, add to the loss, or return a mask. Also returns
// InvalidArgument if the layers return anything other than a single float32 value. Returns
// Unimplemented if an op of the layers has no kernel.
StatusOr<std::shared_ptr<const data::Source>> Augment(std::shared_ptr<const data::Source> source,
                                                      Options options);

}  // namespace tfjob::augment
