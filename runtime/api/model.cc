#include "runtime/api/model.h"

#include <utility>

#include "runtime/api/access.h"
#include "runtime/inference/predictor.h"
#include "runtime/model/any_length.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/model/keras/weights.h"
#include "runtime/model/layer_patterns.h"

namespace tfjob::api {
namespace {

StatusOr<std::string> SummaryOf(const model::Model& model) {
  ASSIGN_OR_RETURN(const auto features, inference::FeaturesOf(model, {}));
  return model::Summary(model, features);
}

// Reads the values of the variables. `features` are the types of the model's inputs.
StatusOr<std::shared_ptr<const VariableValues>> ReadVariableValues(
    const std::string& path, const model::Model& model,
    const std::vector<model::TensorType>& features) {
  ASSIGN_OR_RETURN(const auto variables, model::Variables(model, features));
  ASSIGN_OR_RETURN(const keras::Weights weights, keras::OpenWeights(path, model, variables));
  ASSIGN_OR_RETURN(auto read, keras::ReadValues(weights, variables, {}));
  VariableValues values;
  for (size_t i = 0; i < variables.size(); ++i)
    values.emplace(variables[i].name, *std::move(read[i]));
  return std::make_shared<const VariableValues>(std::move(values));
}

StatusOr<Model> LoadModelFile(const std::string& path) {
  ASSIGN_OR_RETURN(model::Model model, keras::ReadModelFile(path));
  ASSIGN_OR_RETURN(const keras::FileFormat format, keras::FormatOf(path));
  const std::string name = model.name;
  if (format == keras::FileFormat::kJson) return Access::MakeModel(std::move(model), name);
  const auto features = KnownFeatures(model);
  if (!features) return Access::MakeModel(std::move(model), name, nullptr, path);
  ASSIGN_OR_RETURN(auto values, ReadVariableValues(path, model, *features));
  return Access::MakeModel(std::move(model), name, std::move(values));
}

// Returns the values of one layer's variables, without the prefix of their names.
std::shared_ptr<const VariableValues> ValuesOfLayer(const ModelData& model,
                                                    const std::string& layer) {
  if (model.values == nullptr) return nullptr;
  const std::string prefix = StrCat(layer, "/");
  VariableValues own;
  for (const auto& [variable, value] : *model.values) {
    if (variable.starts_with(prefix)) own.emplace(variable.substr(prefix.size()), value);
  }
  return own.empty() ? nullptr : std::make_shared<const VariableValues>(std::move(own));
}

StatusOr<Layer> FindLayer(const ModelData& model, const std::string& name) {
  if (!model.weights.empty()) {
    return Unimplemented("model ", model.name, " has weights, from ", model.weights, ", and does ",
                         "not state the shapes of its inputs, so that the layer would lose its ",
                         "weights; save the model with an Input");
  }
  std::string names;
  const Json document = model::WriteKerasJson(*model.model);
  for (const Json& written : document["config"]["layers"]) {
    const auto& own = written["config"]["name"].get_ref<const std::string&>();
    names += StrCat(names.empty() ? "" : ", ", own);
    if (own != name) continue;
    LayerData layer{.form = written, .error = {}, .values = ValuesOfLayer(model, name)};
    layer.form.erase("inbound_nodes");
    layer.form.erase("build_config");
    return Access::MakeLayer(std::move(layer));
  }
  return NotFound("model ", model.name, " has no layer ", name, "; expected one of ", names);
}

}  // namespace

std::optional<std::vector<model::TensorType>> KnownFeatures(const model::Model& model) {
  auto features = inference::FeaturesOf(model, {});
  if (!features.ok() || !model::HasFixedVariables(model)) return std::nullopt;
  return *std::move(features);
}

Model Access::MakeModel(StatusOr<model::Model> model, const std::string& name,
                        std::shared_ptr<const VariableValues> values, const std::string& weights) {
  auto data = std::make_shared<ModelData>();
  data->name = name;
  data->values = std::move(values);
  data->weights = weights;
  if (model.ok()) {
    data->model = std::make_shared<const model::Model>(*std::move(model));
  } else {
    data->status = ToPublic(model.status());
  }
  return Model(std::move(data));
}

Model::Model()
    : Model(Access::MakeModel(InvalidArgument("there is no model; make one with Sequential, "
                                              "Functional or Model::Load"),
                              "")) {}

Result<Model> Model::Load(const std::string& path) {
  return ToPublic(LoadModelFile(path));
}

const Status& Model::status() const& {
  return data_->status;
}

const std::string& Model::name() const& {
  return data_->name;
}

Model Model::Frozen(const std::vector<std::string>& patterns) const {
  if (data_->model == nullptr) return *this;
  model::Model model = *data_->model;
  const tfjob::Status frozen = model::Freeze(model, patterns);
  return Access::MakeModel(frozen.ok() ? StatusOr<model::Model>(std::move(model)) : frozen,
                           data_->name, data_->values, data_->weights);
}

Model Model::Recomputed(const std::vector<std::string>& patterns) const {
  if (data_->model == nullptr) return *this;
  model::Model model = *data_->model;
  const tfjob::Status marked = model::Recompute(model, patterns);
  return Access::MakeModel(marked.ok() ? StatusOr<model::Model>(std::move(model)) : marked,
                           data_->name, data_->values, data_->weights);
}

Model Model::WithDTypePolicy(const std::string& policy) const {
  if (data_->model == nullptr) return *this;
  const std::optional<model::DTypePolicy> parsed = model::ParseDTypePolicy(policy);
  StatusOr<model::Model> changed = *data_->model;
  if (!parsed) {
    changed = InvalidArgument("model ", data_->name, ": expected the dtype policy float32, ",
                              "mixed_bfloat16 or mixed_float16, got \"", policy, "\"");
  } else if (!model::SetPolicy(*changed, *parsed)) {
    changed = InvalidArgument("model ", data_->name, ": the dtype policy ", policy,
                              " would change no layer, because each has a policy already");
  }
  return Access::MakeModel(std::move(changed), data_->name, data_->values, data_->weights);
}

Model Model::Clone() const {
  if (data_->model == nullptr) return *this;
  return Access::MakeModel(model::Model(*data_->model), data_->name);
}

Result<std::string> Model::Summary() const {
  if (data_->model == nullptr) return data_->status;
  return ToPublic(SummaryOf(*data_->model));
}

Result<Layer> Model::GetLayer(const std::string& name) const {
  if (data_->model == nullptr) return data_->status;
  return ToPublic(FindLayer(*data_, name));
}

Result<std::string> Model::ToJson() const {
  if (data_->model == nullptr) return data_->status;
  return PrintJson(model::WriteKerasJson(*data_->model));
}

}  // namespace tfjob::api
