// Changes the examples of a source by layers, such as RandomCrop and RandomFlip, when a batch needs
// them.
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
  // Whether random layers change the examples. If not, they behave as in evaluation: RandomCrop,
  // for example, resizes the image.
  bool training = true;
  uint64_t seed = 0;
  int threads = 1;  // that change the examples of a batch, including the reader's own
};

// Returns a source in which the field, as float32, is replaced by the output of the layers. The
// other fields do not change. Random layers draw numbers that depend only on the seed, the epoch
// (RowReader::BeginEpoch) and the index of the example: not on batches, threads or tasks.
//
// The layers run on the CPU, for one example at a time, on at most 512 threads, each of which has a
// program. A reader allocates memory for the unchanged examples of a batch when a larger batch
// arrives. As with models, a last axis of length 1 may be missing from the field. Returns
// InvalidArgument if the source has no such field, or if the layers are incompatible with it, have
// variables, add to the loss, or return a mask or anything but one float32 value. Returns
// Unimplemented if an op of the layers has no kernel.
StatusOr<std::shared_ptr<const data::Source>> Augment(std::shared_ptr<const data::Source> source,
                                                      Options options);

}  // namespace tfjob::augment
