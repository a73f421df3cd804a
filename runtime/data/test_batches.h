// Reads a source through a pipeline, for tests that compare sources.
#pragma once

#include <memory>
#include <vector>

#include "runtime/data/pipeline.h"

namespace tfjob::data {

// Returns all values of the batches that a pipeline reads in two epochs, as float64. Each batch is
// preceded by its size.
inline StatusOr<std::vector<double>> Batches(const std::shared_ptr<const Source>& source,
                                             PipelineOptions options = {.batch_size = 5}) {
  options.epochs = 2;
  for (const Field& field : source->fields())
    options.columns.push_back({field.name, field.name, DType::kFloat64, field.shape});
  ASSIGN_OR_RETURN(const auto pipeline, Pipeline::Create(source, options));
  std::vector<double> values;
  while (const Batch* batch = pipeline->Next()) {
    values.push_back(static_cast<double>(batch->size()));
    for (const NamedTensor& tensor : batch->tensors) {
      const auto numbers = tensor.value.data<double>();
      values.insert(values.end(), numbers.begin(), numbers.end());
    }
  }
  RETURN_IF_ERROR(pipeline->status());
  return values;
}

}  // namespace tfjob::data
