// Implements CompiledModel::Predict.
#include <memory>
#include <utility>

#include "runtime/api/compiled_state.h"
#include "runtime/data/pipeline.h"
#include "runtime/inference/predictor.h"
#include "runtime/train/job/compiled_model.h"
#include "runtime/train/job/job_definition.h"

namespace tfjob::api {
namespace {

using PublicArrays = std::map<std::string, Tensor>;

// A predictor with the current values of a model, and the context that owns its device.
struct Prediction {
  std::unique_ptr<train::TaskContext> context;
  std::unique_ptr<inference::Predictor> predictor;
};

// Creates a predictor for inputs of these types. Creates the variables, unless they exist.
StatusOr<Prediction> Prepare(CompiledData& state, const std::vector<model::TensorType>& features) {
  const model::Model& model = state.internal_model();
  RETURN_IF_ERROR(state.Build(features));
  ASSIGN_OR_RETURN(const strategy::ModelDefinition definition,
                   train::DefineState(state.config, model, features));
  RETURN_IF_ERROR(state::CheckFits(*state.values, definition.state));
  Prediction made;
  made.context = std::make_unique<train::TaskContext>(TaskOptionsOf(state, state.config), NoStop(),
                                                      RealClock());
  ASSIGN_OR_RETURN(const exec::Device device, made.context->device());
  ASSIGN_OR_RETURN(made.predictor, inference::Predictor::Create(definition.model, features,
                                                                ValuesOf(*state.values), device));
  return made;
}

StatusOr<io::NamedTensors> PredictFrom(CompiledData& state, const io::NamedTensors& arrays,
                                       const PredictOptions& options) {
  RETURN_IF_ERROR(state.ExpectIdle());
  RETURN_IF_ERROR(CheckBatchSize("batch_size", options.batch_size));
  const model::Model& model = state.internal_model();
  ASSIGN_OR_RETURN(const std::vector<tfjob::Tensor> inputs, inference::OrderInputs(model, arrays));
  ASSIGN_OR_RETURN(const auto features, inference::FeaturesOf(model, inputs));
  ASSIGN_OR_RETURN(const Prediction prediction, Prepare(state, features));
  return prediction.predictor->Run(
      inputs, {.batch_size = options.batch_size, .scale = static_cast<float>(options.scale)},
      NoStop());
}

// Computes the outputs of all batches, which the pipeline reads from `examples` examples.
StatusOr<io::NamedTensors> RunBatches(inference::Predictor& predictor,
                                      tfjob::data::Pipeline& pipeline, int64_t examples) {
  ASSIGN_OR_RETURN(io::NamedTensors outputs, predictor.Outputs(examples));
  std::vector<tfjob::Tensor> inputs;
  int64_t first = 0;
  while (const tfjob::data::Batch* batch = pipeline.Next()) {
    inputs.clear();
    for (const auto& [name, value] : batch->tensors) inputs.push_back(value);
    RETURN_IF_ERROR(predictor.RunBatch(inputs, first, outputs));
    first += batch->size();
  }
  RETURN_IF_ERROR(pipeline.status());
  return outputs;
}

StatusOr<io::NamedTensors> PredictDataset(CompiledData& state, const Dataset& examples,
                                          const PredictOptions& options) {
  RETURN_IF_ERROR(state.ExpectIdle());
  RETURN_IF_ERROR(CheckBatchSize("batch_size", options.batch_size));
  if (options.scale != 1) {
    return InvalidArgument(
        "scale: expected 1, because a Dataset has its own factor, such as "
        "Arrays::scale, got ",
        options.scale);
  }
  const model::Model& model = state.internal_model();
  config::TrainingConfig config = state.config;
  config.eval.batch_size = options.batch_size;
  // OpenDataset checks the whole config, which requires a loss; predictions do not use it.
  if (config.loss.name.empty() && config.outputs == nullptr)
    config.loss.name = "mean_squared_error";
  ASSIGN_OR_RETURN(const auto source, OpenDataset(examples, train::Split::kEval, model, config,
                                                  train::Extent::kInputs));
  ASSIGN_OR_RETURN(const tfjob::data::PipelineOptions reading,
                   train::PredictionPipeline(config, model, *source));
  std::vector<model::TensorType> features;
  for (const tfjob::data::Column& column : reading.columns)
    features.push_back({column.dtype, column.shape});
  ASSIGN_OR_RETURN(const Prediction prediction, Prepare(state, features));
  ASSIGN_OR_RETURN(const auto pipeline, tfjob::data::Pipeline::Create(source, reading));
  return RunBatches(*prediction.predictor, *pipeline, source->size());
}

StatusOr<io::NamedTensors> InputArrays(const PublicArrays& inputs) {
  io::NamedTensors arrays;
  for (const auto& [name, array] : inputs) {
    if (!array.present()) return InvalidArgument("input ", name, ": there is no array");
    arrays.emplace_back(name, Access::Data(array));
  }
  return arrays;
}

PublicArrays ByName(const io::NamedTensors& outputs) {
  PublicArrays arrays;
  for (const auto& [name, array] : outputs) arrays[name] = Access::MakeTensor(array);
  return arrays;
}

StatusOr<Tensor> PredictOne(CompiledData& state, const Tensor& x, const PredictOptions& options) {
  if (!x.present()) return InvalidArgument("there is no array of examples");
  if (state.internal_model().outputs.size() != 1) {
    return InvalidArgument(
        "the model has ", state.internal_model().outputs.size(),
        " outputs; call Predict with a map of arrays, which returns all of them");
  }
  ASSIGN_OR_RETURN(const io::NamedTensors outputs,
                   PredictFrom(state, {{"", Access::Data(x)}}, options));
  return Access::MakeTensor(outputs[0].second);
}

StatusOr<PublicArrays> PredictAll(CompiledData& state, const PublicArrays& inputs,
                                  const PredictOptions& options) {
  ASSIGN_OR_RETURN(const io::NamedTensors arrays, InputArrays(inputs));
  ASSIGN_OR_RETURN(const io::NamedTensors outputs, PredictFrom(state, arrays, options));
  return ByName(outputs);
}

StatusOr<PublicArrays> PredictExamples(CompiledData& state, const Dataset& examples,
                                       const PredictOptions& options) {
  ASSIGN_OR_RETURN(const io::NamedTensors outputs, PredictDataset(state, examples, options));
  return ByName(outputs);
}

}  // namespace

Result<Tensor> CompiledModel::Predict(const Tensor& x, const PredictOptions& options) {
  return ToPublic(PredictOne(*data_, x, options));
}

Result<std::map<std::string, Tensor>> CompiledModel::Predict(
    const std::map<std::string, Tensor>& inputs, const PredictOptions& options) {
  return ToPublic(PredictAll(*data_, inputs, options));
}

Result<std::map<std::string, Tensor>> CompiledModel::Predict(const Dataset& examples,
                                                             const PredictOptions& options) {
  return ToPublic(PredictExamples(*data_, examples, options));
}

}  // namespace tfjob::api
