#include "runtime/api/layer.h"

#include <utility>

#include "runtime/api/access.h"
#include "runtime/model/keras.h"

namespace tfjob::api {

std::string LayerData::class_name() const {
  return JsonField(form)["class_name"].StringOr("").value_or("");
}

std::string LayerData::name() const {
  return JsonField(form)["config"]["name"].StringOr("").value_or("");
}

Layer Access::MakeLayer(LayerData data) {
  return Layer(std::make_shared<const LayerData>(std::move(data)));
}

Layer Access::MakeLayer(Form form, const std::string& name, bool trainable,
                        const Named& activity_regularizer) {
  form.Set("name", name);
  if (!trainable) form.Set("trainable", false);
  form.Set("activity_regularizer", activity_regularizer);
  LayerData data{.form = {{"class_name", form.data().name}}, .error = form.error()};
  data.form["config"] = std::move(form.data().arguments);
  return MakeLayer(std::move(data));
}

Symbol Access::MakeSymbol(CallData call) {
  return Symbol(std::make_shared<const CallData>(std::move(call)), 0);
}

Layer::Layer(const Model& model) : data_(Access::Data(model).layer()) {}

const std::shared_ptr<const LayerData>& ModelData::layer() const {
  std::call_once(layer_made_, [this] {
    LayerData data{
        .form = {{"class_name", "Functional"}}, .error = FromPublic(status), .values = values};
    if (model != nullptr) data.form = model::WriteKerasJson(*model);
    if (!weights.empty()) {
      data.error.Update(Unimplemented(
          "model ", name, " has weights, from ", weights, ", and does not state the shapes of its ",
          "inputs, so that its weights would be lost in another model; save it with an Input"));
    }
    layer_ = std::make_shared<const LayerData>(std::move(data));
  });
  return layer_;
}

Symbol Layer::operator()(const Symbols& inputs) const {
  if (present()) return Access::MakeSymbol({data_, inputs.values()});
  LayerData none{.form = {{"class_name", "Layer"}},
                 .error = InvalidArgument("a Layer without a class was called; assign a layer such "
                                          "as Dense{.units = 10} to it")};
  return Access::MakeSymbol({std::make_shared<const LayerData>(std::move(none)), inputs.values()});
}

Input::operator Layer() const {
  Json batch_shape = Json::array({nullptr});
  for (const int64_t size : shape) batch_shape.push_back(size == -1 ? Json() : Json(size));
  Json config = {{"batch_shape", std::move(batch_shape)}, {"dtype", dtype}};
  if (!name.empty()) config["name"] = name;
  return Access::MakeLayer(
      {.form = {{"class_name", "InputLayer"}, {"config", std::move(config)}}, .error = {}});
}

Input::operator Symbol() const {
  return Access::MakeSymbol({Access::Shared(Layer(*this)), {}});
}

}  // namespace tfjob::api
