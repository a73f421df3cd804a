#include "runtime/api/custom_loss.h"

#include <memory>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/api/form.h"
#include "runtime/model/keras.h"

namespace tfjob::api {

CustomLoss::operator Loss() const {
  Form form("custom");
  form.Set("reduction", reduction);
  const ModelData& data = Access::Data(values);
  if (data.status.ok()) {
    form.data().arguments["model"] = model::WriteKerasJson(*data.model);
  } else {
    form.data().error = FromPublic(data.status);
  }
  return Access::MakeLoss(std::move(form));
}

CustomMetric::operator Named() const {
  Named named("custom");
  if (!name.empty()) named.arguments.emplace_back("name", name);
  named.model = std::make_shared<const Model>(values);
  return named;
}

}  // namespace tfjob::api
