// Makes a dataset in memory a source of examples.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/data/source.h"

namespace tfjob::data {

// `fingerprint` is that of the source; 0: tasks do not compare the values.
std::shared_ptr<const Source> TableSource(std::shared_ptr<const Dataset> dataset,
                                          uint64_t fingerprint = 0);

}  // namespace tfjob::data
