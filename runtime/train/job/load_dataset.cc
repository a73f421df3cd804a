#include <algorithm>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/philox.h"
#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/cache_file.h"
#include "runtime/data/operators/join.h"
#include "runtime/data/operators/scale.h"
#include "runtime/data/operators/select.h"
#include "runtime/data/operators/zip.h"
#include "runtime/data/table_source.h"
#include "runtime/train/job/image_classes.h"
#include "runtime/train/job/job_definition.h"
#include "runtime/train/job/load_format.h"

namespace tfjob::train {
namespace {

using config::SourceConfig;

// Limits, approximately, how many threads the parts of data.train or data.eval use in total.
constexpr int kMostThreads = 512;

// The place of a dataset in the tree of nested datasets.
struct Place {
  int64_t seed = 0;            // of the training file
  std::string path = {};       // "1.0" for datasets[1].datasets[0]; "" for the whole
  bool first = true;           // every index in the path is 0
  int threads = kMostThreads;  // of this dataset, at most

  // Returns the place of dataset `index` of `count` below this one.
  Place Below(size_t index, size_t count) const {
    return {
        .seed = seed,
        .path = path.empty() ? StrCat(index) : StrCat(path, ".", index),
        .first = first && index == 0,
        .threads = std::max(1, threads / static_cast<int>(std::min<size_t>(count, kMostThreads)))};
  }
  // Returns a seed that differs from the seeds for other places and purposes.
  int64_t SeedFor(std::string_view purpose) const {
    return static_cast<int64_t>(PhiloxKey(static_cast<uint64_t>(seed), StrCat(purpose, " ", path)));
  }
};

// Loads the examples of one dataset, and applies its operators.
StatusOr<data::SourcePtr> LoadPart(const config::TrainingConfig& config, Split split,
                                   const model::Model& model, Extent extent, const Place& place);

SourceConfig& SourceIn(config::TrainingConfig& config, Split split) {
  return split == Split::kTrain ? config.data.train : config.data.eval;
}

// Replaces the key in an error, such as "data.train", with the key of dataset `index`, such as
// "data.train.datasets[0]".
Status InDataset(const Status& error, Split split, size_t index) {
  const std::string key = StrCat(KeyOf(split), ".datasets[", index, "]");
  std::string_view message = Message(error);
  if (message.starts_with(KeyOf(split)))
    return {error.code(), StrCat(key, message.substr(KeyOf(split).size()))};
  return Annotate(error, key);
}

// Loads one of several datasets, which is data.train or data.eval in `config`.
StatusOr<data::SourcePtr> LoadElement(config::TrainingConfig& config, Split split,
                                      const model::Model& model, Extent extent,
                                      const Place& place) {
  // Vary the seed, because otherwise all datasets would generate the same data.
  config.seed = place.first ? place.seed : place.SeedFor("dataset");
  const int threads =
      config.data.threads > 0 ? static_cast<int>(config.data.threads) : AvailableProcessors();
  config.data.threads = std::min(threads, place.threads);
  ASSIGN_OR_RETURN(data::SourcePtr loaded, LoadPart(config, split, model, extent, place));
  return data::Scale(std::move(loaded), ScaledInputs(model),
                     static_cast<float>(SourceOf(config, split).scale));
}

StatusOr<data::SourcePtr> Join(const SourceConfig& source, const Place& place,
                               std::vector<data::SourcePtr> parts) {
  switch (source.format) {
    case config::DataFormat::kConcatenate:
      return data::Concatenate(std::move(parts));
    case config::DataFormat::kInterleave:
      return data::Interleave(std::move(parts), {.cycle_length = source.cycle_length,
                                                 .block_length = source.block_length});
    case config::DataFormat::kZip:
      return data::Zip(std::move(parts));
    default:
      break;
  }
  const int64_t seed = place.path.empty() ? place.seed : place.SeedFor("mix");
  data::MixOptions options{.stop = source.stop == config::MixStop::kFirst
                                       ? data::Mixture::Stop::kFirst
                                       : data::Mixture::Stop::kAll,
                           .seed = static_cast<uint64_t>(seed)};
  for (const SourceConfig& part : source.datasets)
    options.weights.push_back(part.weight.value_or(1));
  return data::Mix(std::move(parts), options);
}

StatusOr<data::SourcePtr> LoadJoined(const config::TrainingConfig& config, Split split,
                                     const model::Model& model, Extent extent, const Place& place) {
  const SourceConfig& source = SourceOf(config, split);
  if (source.format == config::DataFormat::kZip) extent = Extent::kNamed;
  config::TrainingConfig own = config;
  const int64_t threads = config.data.threads;
  std::vector<data::SourcePtr> parts;
  for (size_t i = 0; i < source.datasets.size(); ++i) {
    SourceIn(own, split) = source.datasets[i];
    own.data.threads = threads;
    StatusOr<data::SourcePtr> part =
        LoadElement(own, split, model, extent, place.Below(i, source.datasets.size()));
    if (!part.ok()) return InDataset(part.status(), split, i);
    parts.push_back(*std::move(part));
  }
  StatusOr<data::SourcePtr> joined = Join(source, place, std::move(parts));
  return joined.ok() ? joined : Annotate(joined.status(), KeyOf(split));
}

// Applies skip, take, cache and repeat, in this order.
StatusOr<data::SourcePtr> Operate(data::SourcePtr source, const SourceConfig& config) {
  ASSIGN_OR_RETURN(source,
                   data::Select(source, {.skip = config.skip, .take = config.take.value_or(-1)}));
  if (config.cache == config::CacheKind::kMemory) {
    ASSIGN_OR_RETURN(source, data::Cache(source));
  }
  if (!config.cache_file.empty()) {
    ASSIGN_OR_RETURN(source, data::CacheInFile(source, config.cache_file));
  }
  return data::Select(source, {.repeat = config.repeat});
}

StatusOr<data::SourcePtr> LoadPart(const config::TrainingConfig& config, Split split,
                                   const model::Model& model, Extent extent, const Place& place) {
  const bool joined = !SourceOf(config, split).datasets.empty();
  ASSIGN_OR_RETURN(data::SourcePtr source, joined ? LoadJoined(config, split, model, extent, place)
                                                  : LoadFormat(config, split, model, extent));
  StatusOr<data::SourcePtr> changed = Operate(std::move(source), SourceOf(config, split));
  if (changed.ok()) return changed;
  return Annotate(changed.status(), KeyOf(split));
}

}  // namespace

StatusOr<std::shared_ptr<const data::Source>> LoadDataset(const config::TrainingConfig& config,
                                                          Split split) {
  ASSIGN_OR_RETURN(const model::Model model, ReadModel(config.model));
  return LoadDataset(config, split, model);
}

StatusOr<std::shared_ptr<const data::Source>> LoadDataset(const config::TrainingConfig& config,
                                                          Split split, const model::Model& model,
                                                          Extent extent) {
  config::TrainingConfig own = config;
  RETURN_IF_ERROR(AgreeOnClasses(own, split));
  SourceIn(own, split == Split::kTrain ? Split::kEval : Split::kTrain) = {};  // not used
  return LoadPart(own, split, model, extent, {.seed = config.seed});
}

StatusOr<std::shared_ptr<const data::Source>> ArraySource(const SourceConfig& source, Split split,
                                                          const model::Model& model,
                                                          std::map<std::string, Tensor> arrays,
                                                          Extent extent) {
  if (arrays.empty()) {
    return InvalidArgument(KeyOf(split), ": expected arrays of examples, but there are none");
  }
  data::NpzOptions options{.file = {}, .arrays = {}, .in_memory = std::move(arrays)};
  ASSIGN_OR_RETURN(options.arrays, NamedSources(source, split, model, extent));
  StatusOr<data::Dataset> dataset = data::LoadNpz(options);
  if (!dataset.ok()) return Annotate(dataset.status(), KeyOf(split));
  return data::TableSource(std::make_shared<const data::Dataset>(*std::move(dataset)));
}

}  // namespace tfjob::train
