// Reads the tokenizers and vocabularies that a training file names, and opens text files.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/data/source.h"
#include "runtime/data/text/sequence_encoder.h"
#include "runtime/data/text/vocabulary.h"
#include "runtime/model/model.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::train {

// Reads the files of a tokenizer. The padding is `padding`; if that is unset, it is the tokenizer's
// own padding, or 0. Returns InvalidArgument if the vocabulary lacks requested special tokens, if
// max_length is too small for them, or if the files are invalid. Also returns I/O errors. Messages
// start with `at`, the path of the key.
StatusOr<text::SequenceOptions> ReadTokenizer(const config::TokenizeConfig& tokenize,
                                              std::optional<double> padding, const std::string& at);

// Reads the vocabulary of a feature, which must have one. Messages start with `at`, the feature's
// path.
StatusOr<std::shared_ptr<const text::Vocabulary>> ReadVocabulary(
    const config::FeatureConfig& feature, const std::string& at);

// Opens a source with `format: text`. Returns InvalidArgument if the model has several inputs or
// outputs. Also returns errors from ReadTokenizer and data::OpenTokenLines.
StatusOr<std::shared_ptr<const data::Source>> OpenText(const config::TrainingConfig& config,
                                                       Split split, const model::Model& model,
                                                       int threads);

// Opens a source with `format: texts`. Returns errors from ReadTokenizer and data::OpenTexts.
StatusOr<std::shared_ptr<const data::Source>> OpenTexts(const config::TrainingConfig& config,
                                                        Split split, int threads);

}  // namespace tfjob::train
