#include "runtime/base/philox.h"
#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/join.h"
#include "runtime/data/operators/scale.h"
#include "runtime/data/operators/select.h"
#include "runtime/data/operators/zip.h"
#include "runtime/data/table_source.h"
#include "runtime/model/build.h"
#include "runtime/train/job_definition.h"
#include "runtime/train/load_format.h"

namespace tfjob::train {
namespace {

using config::SourceConfig;

// Loads the examples of one dataset, and applies its operators.
StatusOr<data::SourcePtr> LoadPart(const config::TrainingConfig& config, Split split,
                                   const model::Model& model, Extent extent);

// Makes the key in an error of a dataset, "data.train", that of dataset number `index`.
Status InDataset(const Status& error, Split split, size_t index) {
  const std::string key = StrCat(KeyOf(split), ".datasets[", index, "]");
  std::string_view message = Message(error);
  if (message.starts_with(KeyOf(split)))
    return {error.code(), StrCat(key, message.substr(KeyOf(split).size()))};
  return Annotate(error, key);
}

// Loads dataset number `index` of several.
StatusOr<data::SourcePtr> LoadElement(const config::TrainingConfig& config, Split split,
                                      const model::Model& model, Extent extent, size_t index) {
  config::TrainingConfig own = config;
  const SourceConfig part = SourceOf(config, split).datasets[index];
  (split == Split::kTrain ? own.data.train : own.data.eval) = part;
  // Generated data would otherwise be the same in all datasets.
  if (index > 0) {
    own.seed = static_cast<int64_t>(
        PhiloxKey(static_cast<uint64_t>(config.seed), StrCat("dataset ", index)));
  }
  StatusOr<data::SourcePtr> loaded = LoadPart(own, split, model, extent);
  if (!loaded.ok()) return InDataset(loaded.status(), split, index);
  const std::vector<std::string> inputs = model::InputNames(model);
  return data::Scale(*std::move(loaded), {inputs.begin(), inputs.end()},
                     static_cast<float>(part.scale));
}

StatusOr<data::SourcePtr> Join(const config::TrainingConfig& config, const SourceConfig& source,
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
  data::MixOptions options{.stop = source.stop == config::MixStop::kFirst
                                       ? data::Mixture::Stop::kFirst
                                       : data::Mixture::Stop::kAll,
                           .seed = static_cast<uint64_t>(config.seed)};
  for (const SourceConfig& part : source.datasets)
    options.weights.push_back(part.weight.value_or(1));
  return data::Mix(std::move(parts), options);
}

StatusOr<data::SourcePtr> LoadJoined(const config::TrainingConfig& config, Split split,
                                     const model::Model& model, Extent extent) {
  const SourceConfig& source = SourceOf(config, split);
  if (source.format == config::DataFormat::kZip) extent = Extent::kNamed;
  std::vector<data::SourcePtr> parts;
  for (size_t i = 0; i < source.datasets.size(); ++i) {
    ASSIGN_OR_RETURN(parts.emplace_back(), LoadElement(config, split, model, extent, i));
  }
  StatusOr<data::SourcePtr> joined = Join(config, source, std::move(parts));
  return joined.ok() ? joined : Annotate(joined.status(), KeyOf(split));
}

// Applies skip, take, cache and repeat, in this order.
StatusOr<data::SourcePtr> Operate(data::SourcePtr source, const SourceConfig& config) {
  ASSIGN_OR_RETURN(source,
                   data::Select(source, {.skip = config.skip, .take = config.take.value_or(-1)}));
  if (config.cache == config::CacheKind::kMemory) {
    ASSIGN_OR_RETURN(source, data::Cache(source));
  }
  return data::Select(source, {.repeat = config.repeat});
}

StatusOr<data::SourcePtr> LoadPart(const config::TrainingConfig& config, Split split,
                                   const model::Model& model, Extent extent) {
  const bool joined = !SourceOf(config, split).datasets.empty();
  ASSIGN_OR_RETURN(data::SourcePtr source, joined ? LoadJoined(config, split, model, extent)
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
                                                          Split split, const model::Model& model) {
  return LoadPart(config, split, model, Extent::kAll);
}

StatusOr<std::shared_ptr<const data::Source>> ArraySource(const SourceConfig& source, Split split,
                                                          const model::Model& model,
                                                          std::map<std::string, Tensor> arrays) {
  if (arrays.empty()) {
    return InvalidArgument(KeyOf(split), ": expected arrays of examples, but there are none");
  }
  data::NpzOptions options{.file = {}, .arrays = {}, .in_memory = std::move(arrays)};
  ASSIGN_OR_RETURN(options.arrays, NamedSources(source, split, model));
  StatusOr<data::Dataset> dataset = data::LoadNpz(options);
  if (!dataset.ok()) return Annotate(dataset.status(), KeyOf(split));
  return data::TableSource(std::make_shared<const data::Dataset>(*std::move(dataset)));
}

}  // namespace tfjob::train
