// Opens Datasets as sources of examples.
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/base/env.h"
#include "runtime/data/operators/scale.h"
#include "runtime/model/build.h"
#include "runtime/train/job_definition.h"

namespace tfjob::api {
namespace {

config::SourceConfig& SourceIn(config::TrainingConfig& config, train::Split split) {
  return split == train::Split::kTrain ? config.data.train : config.data.eval;
}

// Opens files or arrays. Sets data.train or data.eval of `config`.
StatusOr<SourcePtr> OpenLeaf(const DatasetData& data, train::Split split, const model::Model& model,
                             config::TrainingConfig& config) {
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
  if (files) return train::LoadDataset(config, split, model);
  return train::ArraySource(data.source, split, model, data.arrays);
}

// Opens a part of an operator, with the scale of its inputs.
StatusOr<SourcePtr> OpenPart(const Dataset& dataset, train::Split split,
                             const DatasetContext& context, config::TrainingConfig config) {
  const DatasetData& data = Access::Data(dataset);
  RETURN_IF_ERROR(data.error);
  if (data.open == nullptr) {
    ASSIGN_OR_RETURN(SourcePtr leaf, OpenLeaf(data, split, context.model, config));
    const std::vector<std::string> inputs = model::InputNames(context.model);
    return tfjob::data::Scale(std::move(leaf), {inputs.begin(), inputs.end()},
                              static_cast<float>(SourceIn(config, split).scale));
  }
  std::vector<SourcePtr> parts;
  for (const Dataset& part : data.parts) {
    ASSIGN_OR_RETURN(parts.emplace_back(), OpenPart(part, split, context, config));
  }
  return data.open(context, std::move(parts));
}

}  // namespace

StatusOr<SourcePtr> OpenDataset(const Dataset& dataset, train::Split split,
                                const model::Model& model, config::TrainingConfig& config) {
  const DatasetData& data = Access::Data(dataset);
  RETURN_IF_ERROR(Annotate(data.error, train::KeyOf(split)));
  if (data.open == nullptr) return OpenLeaf(data, split, model, config);
  SourceIn(config, split) = {};  // every part has its own
  const int threads =
      config.data.threads > 0 ? static_cast<int>(config.data.threads) : AvailableProcessors();
  StatusOr<SourcePtr> opened =
      OpenPart(dataset, split, {.model = model, .threads = threads, .seed = config.seed}, config);
  return opened.ok() ? opened : Annotate(opened.status(), train::KeyOf(split));
}

}  // namespace tfjob::api
