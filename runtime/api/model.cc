#include "runtime/api/model.h"

#include <utility>

#include "runtime/api/access.h"
#include "runtime/inference/predictor.h"
#include "runtime/model/freeze.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/model_file.h"

namespace tfjob::api {
namespace {

StatusOr<std::string> SummaryOf(const model::Model& model) {
  ASSIGN_OR_RETURN(const auto features, inference::FeaturesOf(model, {}));
  return model::Summary(model, features);
}

StatusOr<Model> LoadModelFile(const std::string& path) {
  ASSIGN_OR_RETURN(model::Model model, keras::ReadModelFile(path));
  ASSIGN_OR_RETURN(const keras::FileFormat format, keras::FormatOf(path));
  const std::string name = model.name;
  const bool weights = format != keras::FileFormat::kJson;
  return Access::MakeModel(std::move(model), name, weights ? path : "");
}

}  // namespace

Model Access::MakeModel(StatusOr<model::Model> model, const std::string& name,
                        const std::string& weights) {
  ModelData data{.model = nullptr, .status = {}, .name = name, .weights = weights};
  if (model.ok()) {
    data.model = std::make_shared<const model::Model>(*std::move(model));
  } else {
    data.status = ToPublic(model.status());
  }
  return Model(std::make_shared<const ModelData>(std::move(data)));
}

Model::Model()
    : data_(std::make_shared<const ModelData>(ModelData{
          .model = nullptr,
          .status = ToPublic(InvalidArgument("there is no model; make one with Sequential, "
                                             "Functional or Model::Load")),
          .name = {},
          .weights = {}})) {}

Result<Model> Model::Load(const std::string& path) {
  return ToPublic(LoadModelFile(path));
}

const Status& Model::status() const {
  return data_->status;
}

const std::string& Model::name() const {
  return data_->name;
}

Model Model::Frozen(const std::vector<std::string>& patterns) const {
  if (data_->model == nullptr) return *this;
  model::Model model = *data_->model;
  const tfjob::Status frozen = model::Freeze(model, patterns);
  return Access::MakeModel(frozen.ok() ? StatusOr<model::Model>(std::move(model)) : frozen,
                           data_->name, data_->weights);
}

Result<std::string> Model::Summary() const {
  if (data_->model == nullptr) return data_->status;
  return ToPublic(SummaryOf(*data_->model));
}

Result<std::string> Model::ToJson() const {
  if (data_->model == nullptr) return data_->status;
  return PrintJson(model::WriteKerasJson(*data_->model));
}

}  // namespace tfjob::api
