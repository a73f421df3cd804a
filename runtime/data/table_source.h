// Turns a dataset in memory into a source of examples.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/data/source.h"

namespace tfjob::data {

// Returns a source that reads `dataset`. Source::fingerprint returns `fingerprint`; if it is 0,
// tasks do not compare fingerprints.
std::shared_ptr<const Source> TableSource(std::shared_ptr<const Dataset> dataset,
                                          uint64_t fingerprint = 0);

}  // namespace tfjob::data
