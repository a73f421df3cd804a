// Creates a source from a part of another source, without reading or copying examples.
#pragma once

#include "runtime/data/operators/fields.h"
#include "runtime/data/operators/kept_rows.h"
#include "runtime/data/operators/selection.h"

namespace tfjob::data {

// Returns a source of the selected examples, or `source` itself if the options select everything
// once. A repeated example occurs several times per epoch. Propagates errors from
// Selection::Create.
StatusOr<SourcePtr> Select(SourcePtr source, const SelectOptions& options);

// Returns a source of the kept examples. `kept` must have been created for the size of the source.
// Returns InvalidArgument if no example is kept.
StatusOr<SourcePtr> Keep(SourcePtr source, KeptRows kept);

}  // namespace tfjob::data
