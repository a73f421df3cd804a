// Opens Datasets as sources of examples.
#include <algorithm>
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/base/env.h"
#include "runtime/config/token_keys.h"
#include "runtime/data/operators/scale.h"
#include "runtime/train/job/batch_source.h"
#include "runtime/train/job/image_classes.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {
namespace {

config::SourceConfig& SourceIn(config::TrainingConfig& config, train::Split split) {
  return split == train::Split::kTrain ? config.data.train : config.data.eval;
}

// Checks that a part of Zip names the inputs and outputs that it provides, if its format supports
// this. Parts in other formats, such as images, provide one input and its labels.
tfjob::Status CheckNames(const config::SourceConfig& source) {
  const bool names = source.format == config::DataFormat::kNpz ||
                     source.format == config::DataFormat::kTfRecord ||
                     source.format == config::DataFormat::kJsonLines || !source.features.empty();
  if (!names || !source.inputs.empty() || !source.targets.empty() || !source.sample_weights.empty())
    return OkStatus();
  return InvalidArgument("Zip: expected the inputs or targets that each dataset provides; name ",
                         "them in `inputs` or `targets`");
}

// Opens files or arrays. Sets data.train or data.eval of `config`.
StatusOr<SourcePtr> OpenLeaf(const DatasetData& data, train::Split split, const model::Model& model,
                             config::TrainingConfig& config,
                             train::Extent extent = train::Extent::kAll) {
  config::TrainingConfig checked = config;
  checked.data.train = checked.data.eval = {};
  const bool files = !data.keys.is_null();
  if (files) {
    Json keys = Json::object();
    keys["data"][split == train::Split::kTrain ? "train" : "eval"] = data.keys;
    RETURN_IF_ERROR(config::SetOpenKeys(checked, keys));
  }
  RETURN_IF_ERROR(config::Validate(checked, {.model = true, .data = true}));
  SourceIn(config, split) = files ? SourceIn(checked, split) : data.source;
  const config::SourceConfig& source = SourceIn(config, split);
  if (extent == train::Extent::kNamed) RETURN_IF_ERROR(CheckNames(source));
  if (files) return train::LoadDataset(config, split, model, extent);
  return train::ArraySource(source, split, model, data.arrays, extent);
}

// Limits, approximately, how many threads the parts of a Dataset use in total.
constexpr int kMostThreads = 512;

// Opens the parts of an operator as sources.
class Parts {
 public:
  // Changes data.threads and either data.train or data.eval of the config while it opens files. At
  // most `threads` threads call functions of the program.
  Parts(const model::Model& model, train::Split split, int threads, config::TrainingConfig& config)
      : model_(model), split_(split), threads_(threads), config_(config) {}

  // Opens a part, and applies the scale to its inputs. The source uses at most about `most`
  // threads.
  StatusOr<SourcePtr> Open(const Dataset& dataset, int most = kMostThreads,
                           train::Extent extent = train::Extent::kAll) {
    const DatasetData& data = Access::Data(dataset);
    RETURN_IF_ERROR(data.error);
    const int threads = std::min(threads_, most);
    if (data.open == nullptr) return OpenFiles(data, threads, extent);
    if (data.zip) extent = train::Extent::kNamed;
    if (data.needs_labels && extent == train::Extent::kInputs)
      extent = train::Extent::kInputsAndPresent;
    const auto count = static_cast<int>(std::clamp<size_t>(data.parts.size(), 1, kMostThreads));
    std::vector<SourcePtr> parts;
    for (size_t i = 0; i < data.parts.size(); ++i) {
      StatusOr<SourcePtr> part = Open(data.parts[i], std::max(1, most / count), extent);
      if (part.ok()) {
        parts.push_back(*std::move(part));
      } else if (data.parts.size() == 1) {
        return part;
      } else {
        return Annotate(part.status(), StrCat("dataset ", i));
      }
    }
    return data.open({.model = model_, .threads = threads, .seed = config_.seed}, std::move(parts));
  }

  // Returns the configs of the folders of images and text files that have been opened.
  std::vector<config::SourceConfig> TakeFolders() { return std::move(folders_); }

 private:
  StatusOr<SourcePtr> OpenFiles(const DatasetData& data, int threads, train::Extent extent) {
    config_.data.threads = threads;
    ASSIGN_OR_RETURN(SourcePtr source, OpenLeaf(data, split_, model_, config_, extent));
    const config::SourceConfig& opened = SourceIn(config_, split_);
    if (opened.format == config::DataFormat::kImages || opened.format == config::DataFormat::kTexts)
      folders_.push_back(opened);
    return tfjob::data::Scale(std::move(source), train::ScaledInputs(model_),
                              static_cast<float>(opened.scale));
  }

  const model::Model& model_;
  const train::Split split_;
  const int threads_;
  config::TrainingConfig& config_;
  std::vector<config::SourceConfig> folders_;
};

}  // namespace

tfjob::Status SetBatchKeys(const std::optional<BucketByLength>& buckets,
                           const std::optional<MaskTokens>& mask, const std::vector<Layer>& augment,
                           config::TrainingConfig& config) {
  Json data = Json::object();
  if (buckets) {
    Json& keys = data["bucket_by_length"];
    keys = {{"boundaries", buckets->boundaries}};
    if (buckets->padding) keys["padding"] = *buckets->padding;
    if (!buckets->batch_sizes.empty()) keys["batch_sizes"] = buckets->batch_sizes;
  }
  if (mask) {
    Json& keys = data["mask_tokens"];
    keys = {{"mask_token", mask->mask_token},
            {"vocabulary_size", mask->vocabulary_size},
            {"rate", mask->rate}};
    if (!mask->special_tokens.empty()) keys["special_tokens"] = mask->special_tokens;
  }
  for (size_t i = 0; i < augment.size(); ++i) {
    const std::string at = StrCat("data.augment[", i, "]");
    if (!augment[i].present())
      return InvalidArgument(at, ": expected a layer, such as RandomFlip{}, got Layer{}");
    const LayerData& layer = Access::Data(augment[i]);
    RETURN_IF_ERROR(Annotate(layer.error, at));
    data["augment"].push_back(layer.form);
  }
  if (data.empty()) return OkStatus();
  RETURN_IF_ERROR(config::SetOpenKeys(config, {{"data", data}}));
  // The sizes of the buckets replace the batch size.
  if (buckets && !buckets->batch_sizes.empty()) {
    config.batch_size.reset();
    config.global_batch_size.reset();
  }
  RETURN_IF_ERROR(config::CheckBuckets(config));
  RETURN_IF_ERROR(config::CheckMasking(config.data));
  return config::CheckAugment(config.data);
}

StatusOr<SourcePtr> OpenDataset(const Dataset& dataset, train::Split split,
                                const model::Model& model, config::TrainingConfig& config,
                                train::Extent extent) {
  const DatasetData& data = Access::Data(dataset);
  RETURN_IF_ERROR(Annotate(data.error, train::KeyOf(split)));
  RETURN_IF_ERROR(train::CheckAugment(config, model));
  if (data.open == nullptr) {
    ASSIGN_OR_RETURN(SourcePtr leaf, OpenLeaf(data, split, model, config, extent));
    return train::BatchSource(config, split, model, std::move(leaf));
  }
  const int64_t given = config.data.threads;
  Parts parts(model, split, given > 0 ? static_cast<int>(given) : AvailableProcessors(), config);
  StatusOr<SourcePtr> opened = parts.Open(dataset, kMostThreads, extent);
  config.data.threads = given;
  // Every part has its own keys, so keep only the keys of folders: data.eval uses the classes of
  // data.train.
  SourceIn(config, split) = {};
  SourceIn(config, split).datasets = parts.TakeFolders();
  if (!opened.ok()) return Annotate(opened.status(), train::KeyOf(split));
  RETURN_IF_ERROR(train::AgreeOnClasses(config, split));
  return train::BatchSource(config, split, model, *std::move(opened));
}

}  // namespace tfjob::api
