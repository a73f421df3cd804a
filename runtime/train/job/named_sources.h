// Finds the arrays or features of a dataset that the model's inputs, labels and sample weights use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/model/model.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::train {

// Describes one kind of array: the model's inputs, its labels or its sample weights.
struct Role {
  std::string key;                  // "data.train.inputs"
  std::vector<std::string> layers;  // the names that the training file uses
  std::vector<std::string> arrays;  // the names of the arrays in the dataset
  std::string otherwise;            // the array for the only input or output
};
Role InputRole(const model::Model& model, Split split);
// Returns the role of the outputs' labels or sample weights. `array` returns the name that the
// array of output i has in a dataset (model::LabelsName, …).
Role OutputRole(const model::Model& model, Split split, std::string_view key,
                std::string (*array)(const model::Model&, size_t), std::string otherwise);

// Returns the arrays or features for the model's inputs and, unless `extent` is kInputs, for its
// labels and sample weights, which are optional if `extent` is kInputsAndPresent. Returns
// InvalidArgument if the training file names an input or output that the model lacks.
StatusOr<std::vector<data::NpzOptions::Source>> NamedSources(const config::SourceConfig& source,
                                                             Split split, const model::Model& model,
                                                             Extent extent = Extent::kAll);

}  // namespace tfjob::train
