// Derives the tensors of a job's batches from its model, its training file and its data. Determines
// which array of the data each input uses, which arrays are the labels and sample weights of each
// output, and how the arrays are converted.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/data/pipeline.h"
#include "runtime/model/build.h"

namespace tfjob::train {

// The sections of the training file that describe data: data.train and data.eval.
enum class Split { kTrain, kEval };
const config::SourceConfig& SourceOf(const config::TrainingConfig& config, Split split);
std::string_view KeyOf(Split split);  // "data.train", "data.eval"

// Determines which inputs and outputs of the model a dataset provides.
enum class Extent {
  kAll,
  kNamed,             // those that the dataset names; others come from other datasets
  kInputs,            // the inputs; labels and sample weights are not needed
  kInputsAndPresent,  // the inputs, and those labels and sample weights that the dataset has
};

// Returns the config of each output of the model (config::ForOutput). Returns InvalidArgument if
// the training file names an output that the model does not have, or specifies no loss for one of
// the outputs.
StatusOr<std::vector<config::TrainingConfig>> OutputConfigs(const config::TrainingConfig& config,
                                                            const model::Model& model);

// The columns of a batch. The columns and the source's fields have the names of the graph's feeds
// (model/build.h).
struct BatchColumns {
  std::vector<data::Column> inputs;                         // one per input
  std::vector<data::Column> labels;                         // one per output
  std::vector<std::optional<data::Column>> sample_weights;  // one per output

  std::vector<data::Column> All() const;
  // Sets the types of the features, labels and sample weights.
  void Describe(model::BuildOptions& build) const;
};

// Returns the inputs that the `scale` key applies to: those that are float32 in the model.
std::set<std::string> ScaledInputs(const model::Model& model);

// Returns the columns of the model's inputs. Returns InvalidArgument, with a message that names the
// key or the layer, if the data lack an input.
StatusOr<std::vector<data::Column>> InputColumnsOf(const config::TrainingConfig& config,
                                                   Split split, const model::Model& model,
                                                   const data::Source& source);

// Returns InvalidArgument, with a message that names the key or the layer, if the data are
// incompatible with the model. Class weights become sample weights in kTrain only, as in Keras.
StatusOr<BatchColumns> ColumnsOf(const config::TrainingConfig& config, Split split,
                                 const model::Model& model, const data::Source& source);

}  // namespace tfjob::train
