#include "runtime/train/job/batch_source.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/augment/augment.h"
#include "runtime/base/env.h"
#include "runtime/base/json.h"
#include "runtime/base/philox.h"
#include "runtime/data/operators/bucket_by_length.h"
#include "runtime/data/operators/mask_tokens.h"
#include "runtime/model/any_length.h"
#include "runtime/model/build.h"
#include "runtime/model/keras.h"

namespace tfjob::train {
namespace {

std::vector<int64_t> Whole(const std::vector<double>& values) {
  std::vector<int64_t> whole;
  for (const double value : values) whole.push_back(static_cast<int64_t>(value));
  return whole;
}

// Returns the inputs whose first axis may have any length.
StatusOr<std::vector<std::string>> InputsOfAnyLength(const model::Model& model) {
  const std::vector<std::string> inputs = model::InputNames(model);
  const std::vector<std::optional<graph::TensorType>> stated = model::StatedInputs(model);
  std::vector<std::string> found;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!stated[i] || !model::HasAnyLength(stated[i]->shape)) continue;
    const std::vector<int64_t>& dims = stated[i]->shape.dims();
    if (dims[0] != model::kAnyLength || std::ranges::count(dims, model::kAnyLength) > 1) {
      return InvalidArgument("input ", inputs[i], " of the model: expected any length in its ",
                             "first axis only, got ", model::StatedText(stated[i]->shape));
    }
    found.push_back(inputs[i]);
  }
  if (found.empty()) {
    return InvalidArgument("expected a model that takes any length, such as one that begins with ",
                           "InputLayer: {batch_shape: [null, null]}, but it states the lengths of ",
                           "its inputs, or has no InputLayer");
  }
  if (model::HasFixedVariables(model)) return found;
  return InvalidArgument("expected a model whose variables do not depend on the length of its ",
                         "inputs, such as one with a pooling layer before its Dense layers");
}

StatusOr<std::shared_ptr<const data::Source>> InBuckets(
    const config::BucketConfig& buckets, const model::Model& model,
    std::shared_ptr<const data::Source> source) {
  data::BucketByLengthOptions options{.padding = buckets.padding,
                                      .boundaries = Whole(buckets.boundaries)};
  ASSIGN_OR_RETURN(options.fields, InputsOfAnyLength(model));
  return data::BucketByLength(std::move(source), options);
}

// Returns the ids that are never masked: the listed ids and the id of the padding. The padding is 0
// unless the data or the training file specify it.
StatusOr<std::vector<int64_t>> SpecialTokens(const config::MaskConfig& mask,
                                             const data::Field* tokens) {
  std::vector<int64_t> ids = Whole(mask.special_tokens);
  const std::optional<double> padding = tokens != nullptr ? tokens->padding : std::nullopt;
  if (padding && std::isfinite(*padding)) ids.push_back(static_cast<int64_t>(*padding));
  if (!ids.empty()) return ids;
  if (!padding) return std::vector<int64_t>{0};
  return InvalidArgument("expected one id that pads all texts of ", tokens->file,
                         ", but the joined datasets have different ones; list them in ",
                         "special_tokens");
}

StatusOr<std::shared_ptr<const data::Source>> WithMasks(
    const config::TrainingConfig& config, Split split, const model::Model& model,
    std::shared_ptr<const data::Source> source) {
  const std::vector<std::string> inputs = model::InputNames(model);
  if (inputs.size() != 1 || model::OutputNames(model).size() != 1) {
    return InvalidArgument("expected a model with one input and one output, which predicts the ",
                           "tokens, got ", inputs.size(), " inputs and ",
                           model::OutputNames(model).size(), " outputs");
  }
  const config::MaskConfig& mask = config.data.mask_tokens;
  data::MaskTokensOptions options{
      .tokens = inputs[0],
      .weights = model::SampleWeightsName(model, 0),
      .mask_token = *mask.mask_token,
      .vocabulary_size = *mask.vocabulary_size,
      .rate = mask.rate.value_or(config::kMaskRate),
      .seed = PhiloxKey(static_cast<uint64_t>(config.seed), KeyOf(split))};
  ASSIGN_OR_RETURN(options.special_tokens, SpecialTokens(mask, source->Find(inputs[0])));
  return data::MaskTokens(std::move(source), std::move(options));
}

StatusOr<model::Model> AugmentLayers(const config::TrainingConfig& config,
                                     const model::Model& model) {
  const std::vector<std::string> inputs = model::InputNames(model);
  if (inputs.size() != 1) {
    return InvalidArgument("data.augment: expected a model with one input, which the layers ",
                           "change, got ", inputs.size(), " inputs");
  }
  const std::optional<graph::TensorType> stated = model::StatedInputs(model)[0];
  if (stated && stated->dtype != DType::kFloat32) {
    return InvalidArgument("data.augment: expected a model whose input is float32, got ",
                           Name(stated->dtype));
  }
  return model::ReadLayers(JsonField(*config.data.augment, "data.augment"));
}

StatusOr<std::shared_ptr<const data::Source>> WithLayers(
    const config::TrainingConfig& config, Split split, const model::Model& model,
    std::shared_ptr<const data::Source> source) {
  ASSIGN_OR_RETURN(model::Model layers, AugmentLayers(config, model));
  augment::Options options{.field = model::InputNames(model)[0],
                           .layers = std::move(layers),
                           .training = split == Split::kTrain,
                           .seed = static_cast<uint64_t>(config.seed),
                           .threads = config.data.threads > 0
                                          ? static_cast<int>(config.data.threads)
                                          : AvailableProcessors()};
  return augment::Augment(std::move(source), std::move(options));
}

// Puts the key before the message, unless the message already starts with it.
Status InKey(const Status& error, std::string_view key, Split split) {
  if (error.ok() || Message(error).starts_with(StrCat("data.", key))) return error;
  return Annotate(error, StrCat("data.", key, " (", KeyOf(split), ")"));
}

}  // namespace

Status CheckAugment(const config::TrainingConfig& config, const model::Model& model) {
  if (config.data.augment == nullptr) return OkStatus();
  return AugmentLayers(config, model).status();
}

StatusOr<std::shared_ptr<const data::Source>> AugmentedSource(
    const config::TrainingConfig& config, Split split, const model::Model& model,
    std::shared_ptr<const data::Source> source) {
  if (config.data.augment == nullptr) return source;
  auto made = WithLayers(config, split, model, std::move(source));
  RETURN_IF_ERROR(InKey(made.status(), "augment", split));
  return made;
}

StatusOr<std::shared_ptr<const data::Source>> BatchSource(
    const config::TrainingConfig& config, Split split, const model::Model& model,
    std::shared_ptr<const data::Source> source) {
  StatusOr<std::shared_ptr<const data::Source>> made = std::move(source);
  if (config.data.bucket_by_length.present()) {
    made = InBuckets(config.data.bucket_by_length, model, *std::move(made));
    RETURN_IF_ERROR(InKey(made.status(), "bucket_by_length", split));
  }
  if (config.data.mask_tokens.present()) {
    made = WithMasks(config, split, model, *std::move(made));
    RETURN_IF_ERROR(InKey(made.status(), "mask_tokens", split));
  }
  return AugmentedSource(config, split, model, *std::move(made));
}

}  // namespace tfjob::train
