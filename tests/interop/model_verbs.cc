#include "tests/interop/model_verbs.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/model/build.h"
#include "runtime/model/keras.h"
#include "runtime/model/layer/initializer.h"

namespace tfjob {

StatusOr<Json> InitialValues(const Json& request) {
  ASSIGN_OR_RETURN(const model::Model model,
                   model::ReadKerasJson(request["model"].get<std::string>(), "the model"));
  std::vector<model::TensorType> features;
  for (const Json& input : request["inputs"]) {
    const auto shape = input.get<std::vector<int64_t>>();
    features.push_back({DType::kFloat32, Shape({shape.begin() + 1, shape.end()})});
  }
  ASSIGN_OR_RETURN(const auto variables, model::Variables(model, features));
  Json reply = Json::object();
  for (const model::VariableSpec& spec : variables) {
    const Tensor value = model::InitialValue(spec.initializer, spec.dtype, spec.shape,
                                             request.value("seed", uint64_t{1}), spec.name);
    if (value.dtype() == DType::kInt64) {  // the count of an adapted Normalization
      const auto integers = value.data<int64_t>();
      reply[spec.name] = std::vector<int64_t>(integers.begin(), integers.end());
      continue;
    }
    const auto floats = value.data<float>();
    reply[spec.name] = std::vector<float>(floats.begin(), floats.end());
  }
  return reply;
}

}  // namespace tfjob
