// Creates a source of examples from a dataset in memory.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/data/source.h"

namespace tfjob::data {

// Returns a source that reads `dataset`. Source::fingerprint returns `fingerprint`; if this is 0,
// tasks do not compare the source.
std::shared_ptr<const Source> TableSource(std::shared_ptr<const Dataset> dataset,
                                          uint64_t fingerprint = 0);

}  // namespace tfjob::data
