#include "runtime/api/optimizer.h"

#include <utility>

#include "runtime/api/access.h"

namespace tfjob::api {

Optimizer::Optimizer(const std::string& name)
    : data_(std::make_shared<const FormData>(FormData{.name = name})) {}

Loss::Loss(const std::string& name)
    : data_(std::make_shared<const FormData>(FormData{.name = name})) {}

LearningRate Access::MakeLearningRate(std::optional<double> initial, Form schedule) {
  LearningRate made;
  made.rate_ = initial;
  schedule.Set("name", schedule.data().name);
  made.schedule_ = std::make_shared<const FormData>(std::move(schedule.data()));
  return made;
}

Optimizer Access::MakeOptimizer(const LearningRate& rate, Form form) {
  form.Set("learning_rate", rate.rate_);
  if (rate.schedule_ != nullptr)
    form.data().arguments["learning_rate_schedule"] = rate.schedule_->arguments;
  return Optimizer(std::make_shared<const FormData>(std::move(form.data())));
}

Loss Access::MakeLoss(Form form) {
  return Loss(std::make_shared<const FormData>(std::move(form.data())));
}

}  // namespace tfjob::api
