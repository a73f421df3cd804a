// Makes a dataset in memory a source of examples.
#pragma once

#include <memory>

#include "runtime/data/source.h"

namespace tfjob::data {

std::shared_ptr<const Source> TableSource(std::shared_ptr<const Dataset> dataset);

}  // namespace tfjob::data
