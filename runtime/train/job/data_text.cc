#include "runtime/train/job/data_text.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_join.h"
#include "runtime/config/keys.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/strategy/select.h"
#include "runtime/train/job/batch_source.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::train {
namespace {

using MakeOptions = absl::FunctionRef<StatusOr<data::PipelineOptions>(
    const strategy::ModelDefinition&, const data::Source&)>;

std::string FieldsText(const data::Source& source) {
  std::vector<std::string> fields;
  for (const data::Field& field : source.fields())
    fields.push_back(StrCat(field.name, " ", Name(field.dtype), " ", field.shape.ToString()));
  return absl::StrJoin(fields, ", ");
}

StatusOr<std::string> SplitText(const config::TrainingConfig& config, Split split, int tasks,
                                MakeOptions make_options) {
  ASSIGN_OR_RETURN(const model::Model model, ReadModel(config.model));
  ASSIGN_OR_RETURN(std::shared_ptr<const data::Source> source, LoadDataset(config, split, model));
  ASSIGN_OR_RETURN(source, BatchSource(config, split, model, std::move(source)));
  ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                   DefineModel(config, split, *source, tasks, model));
  ASSIGN_OR_RETURN(const data::PipelineOptions options, make_options(definition, *source));
  ASSIGN_OR_RETURN(const std::string pipeline, data::Pipeline::Describe(source, options));
  const std::string key(KeyOf(split));
  const std::string format =
      config::GetKey(config, *config::FindKey(key + ".format")).get<std::string>();
  const std::string left_out = source->LeftOut();
  return StrCat(key, "\nsource: ", format, ": ", source->Describe(), "\nexamples: ", source->size(),
                left_out.empty() ? "" : StrCat("; ", left_out),
                "\nfields of an example: ", FieldsText(*source), "\n", pipeline);
}

std::string ShardText(config::ShardPolicy wanted, data::Sharding sharding) {
  const char* const name = sharding == data::Sharding::kData   ? "data"
                           : sharding == data::Sharding::kFile ? "file"
                                                               : "off";
  return StrCat("shard: ", name, wanted == config::ShardPolicy::kAuto ? " (auto)" : "", "\n");
}

StatusOr<std::string> EvaluationText(const config::TrainingConfig& config) {
  const auto evaluation = [&](const strategy::ModelDefinition& definition,
                              const data::Source& source) {
    return EvaluationPipeline(config, definition, source);
  };
  return SplitText(config, Split::kEval, 1, evaluation);
}

}  // namespace

StatusOr<std::string> DescribeData(const config::TrainingConfig& config,
                                   const cluster::TfConfig& tf_config) {
  ASSIGN_OR_RETURN(const config::StrategyKind kind,
                   strategy::Select(config.strategy.kind, tf_config));
  const int tasks = cluster::TrainingTaskCount(tf_config);
  const int rank = cluster::TrainingRank(tf_config, tf_config.task);
  if (rank < 0) {
    const std::string text = "data.train\nshare: none; this task does not train\n";
    const bool evaluates = cluster::RoleOf(tf_config) == cluster::Role::kEvaluator;
    if (!evaluates || !config.data.eval.present()) return text;
    ASSIGN_OR_RETURN(const std::string eval, EvaluationText(config));
    return StrCat(text, "\n", eval);
  }
  ASSIGN_OR_RETURN(const data::Sharding sharding, ShardingOf(config, tasks));
  const auto training = [&](const strategy::ModelDefinition& definition,
                            const data::Source& source) {
    return TrainingPipeline(config, definition, source, rank, tasks,
                            strategy::MakesGlobalBatches(kind));
  };
  ASSIGN_OR_RETURN(std::string text, SplitText(config, Split::kTrain, tasks, training));
  text += ShardText(config.data.shard, sharding);
  if (!config.data.eval.present()) return text;
  ASSIGN_OR_RETURN(const std::string eval, EvaluationText(config));
  return StrCat(text, "\n", eval);
}

}  // namespace tfjob::train
