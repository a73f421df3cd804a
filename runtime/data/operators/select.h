// Makes a part of a source a source, without reading or copying examples.
#pragma once

#include "runtime/data/operators/fields.h"
#include "runtime/data/operators/kept_rows.h"
#include "runtime/data/operators/selection.h"

namespace tfjob::data {

// Returns the errors of Selection::Create. Options that change nothing return the source itself. A
// repeated example counts as several: it comes up that many times in every epoch.
StatusOr<SourcePtr> Select(SourcePtr source, const SelectOptions& options);

// Returns the examples that are kept. Returns InvalidArgument if there are none. The source must
// have the rows of `kept`.
StatusOr<SourcePtr> Keep(SourcePtr source, KeptRows kept);

}  // namespace tfjob::data
