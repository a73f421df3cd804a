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
  // for example, takes the middle of an image.
  bool training = true;
  uint64_t seed = 0;
  int threads = 1;  // that change the examples of a batch, including the reader's own
};

// Returns a source in which the field, as float32, is replaced by the output of the layers. The
// other fields do not change. Random layers draw numbers that depend only on the seed, the epoch
// (RowReader::BeginEpoch) and the index of the example: not on batches, threads or tasks.
//
// The layers run on the CPU, for one example at a time. Readers allocate memory for the unchanged
// examples when a larger batch arrives. Returns InvalidArgument if the source has no such field,
// if the layers are incompatible with it, have variables, or return anything but one float32
// value, and Unimplemented if an op of the layers has no kernel.
StatusOr<std::shared_ptr<const data::Source>> Augment(std::shared_ptr<const data::Source> source,
                                                      Options options);

}  // namespace tfjob::augment
