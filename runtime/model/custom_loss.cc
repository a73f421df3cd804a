#include "runtime/model/custom_loss.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/graph/ops.h"
#include "runtime/model/any_length.h"
#include "runtime/model/shape.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

// Returns the types of the loss's inputs: the labels and the prediction.
std::vector<TensorType> InputsOf(const Model& loss_model, const Shape& output,
                                 const TensorType& labels) {
  const TensorType stated = *StatedInputs(loss_model)[1];
  return {labels, {stated.dtype, TakenAs(stated.shape, output)}};
}

// Reshapes the batch of examples to the shape of one of the loss's inputs.
Output Taken(Builder& b, Output x, const Shape& example) {
  return b.ok() ? Reshape(b, x, Batched(b.shape(x).dim(0), example)) : Output();
}

// Returns how messages name the metric.
std::string NameInMessages(const Metric& metric) {
  return StrCat("metric ", metric.given_name.empty() ? Name(metric) : metric.given_name);
}

// Returns the model of a metric as that of a loss.
Loss AsLoss(const Metric& metric) {
  return {.kind = LossKind::kCustom, .model = metric.model};
}

// Returns the type that the data's labels are converted to for a metric's model. `labels` is their
// type in the data, which the loss determines.
TensorType LabelsOfMetric(const Metric& metric, const TensorType& labels) {
  const TensorType stated = LabelsOf(*metric.model, labels.shape);
  return {labels.dtype == DType::kInt64 ? stated.dtype : labels.dtype, stated.shape};
}

// Returns InvalidArgument if the model adds penalties, or gives its output a mask. The loss would
// contain neither of them. OutputTypes must accept the types of the inputs.
Status CheckSideEffects(const Model& model, const std::vector<TensorType>& in) {
  Builder b;
  LayerCall call{.b = b};
  for (size_t i = 0; i < in.size(); ++i) {
    call.inputs.push_back(
        Placeholder(b, StrCat("input/", i), in[i].dtype, Batched(1, in[i].shape)));
  }
  Forward(model, call);
  if (!b.ok()) return b.status();
  if (!call.penalties.empty()) {
    return InvalidArgument(
        "expected layers without activity_regularizer or ActivityRegularization, ",
        "because the loss would lack the penalty; add it to the output instead");
  }
  if (!call.output_masks || call.output_masks->empty() || !(*call.output_masks)[0].valid())
    return OkStatus();
  return InvalidArgument("expected an output without a mask, because the loss would ignore it; ",
                         "remove the layer Masking, and multiply the output by 0 or 1 instead");
}

}  // namespace

Status CheckLossModel(const Model& model) {
  if (model.inputs.size() != 2 || model.outputs.size() != 1) {
    return InvalidArgument("expected a model with two inputs, the labels and the predictions, and ",
                           "one output, got ", model.inputs.size(), " inputs and ",
                           model.outputs.size(), " outputs");
  }
  const std::vector<std::optional<TensorType>> stated = StatedInputs(model);
  if (!stated[0] || !stated[1])
    return InvalidArgument("expected a model whose inputs state their shapes");
  if (stated[1]->dtype == DType::kFloat32) return OkStatus();
  return InvalidArgument("expected a second input, the predictions, of type float32, got ",
                         Name(stated[1]->dtype));
}

TensorType LabelsOf(const Model& loss_model, const Shape& labels) {
  const TensorType stated = *StatedInputs(loss_model)[0];
  return {stated.dtype, TakenAs(stated.shape, labels)};
}

Status CheckCustomLoss(const Loss& loss, const Shape& output, const TensorType& labels) {
  const Model& model = *loss.model;
  RETURN_IF_ERROR(CheckLossModel(model));
  const std::vector<TensorType> in = InputsOf(model, output, labels);
  ASSIGN_OR_RETURN(const std::vector<VariableSpec> variables, Variables(model, in));
  if (!variables.empty()) {
    return InvalidArgument("expected a loss without variables, got the variable ",
                           variables[0].name);
  }
  ASSIGN_OR_RETURN(const std::vector<TensorType> out, OutputTypes(model, in));
  const Shape& values = out[0].shape;
  if (out[0].dtype == DType::kFloat32 &&
      (values.rank() == 0 || values == PlacesOf(output) || values == in[1].shape)) {
    return CheckSideEffects(model, in);
  }
  return InvalidArgument("expected a loss that computes float32 values of shape [] (one per ",
                         "example), ", PlacesOf(output).ToString(), " or ", in[1].shape.ToString(),
                         ", got ", Name(out[0].dtype), " of shape ", values.ToString());
}

Output CustomLossValues(Builder& b, const Loss& loss, Output prediction, Output labels) {
  if (!b.ok()) return {};
  const Model& model = *loss.model;
  const Shape own = b.shape(prediction);
  const Shape example({own.dims().begin() + 1, own.dims().end()});
  const TensorType taken = InputsOf(model, example, {})[1];
  LayerCall call{.b = b, .inputs = {labels, Taken(b, prediction, taken.shape)}, .variables = {}};
  const Output values = Forward(model, call)[0];
  if (!b.ok()) return {};
  const bool per_element =
      b.shape(values) == Batched(own.dim(0), taken.shape) && example.rank() > 0;
  // The model may take the prediction without its last axis, or with one more axis.
  return per_element ? Mean(b, Reshape(b, values, own), {-1}) : values;
}

Status CheckCustomMetric(const Metric& metric, const Shape& output, const TensorType& labels) {
  if (metric.model == nullptr)
    return InvalidArgument("metric custom: expected a model that computes the values");
  RETURN_IF_ERROR(Annotate(CheckLossModel(*metric.model), NameInMessages(metric)));
  return Annotate(CheckCustomLoss(AsLoss(metric), output, LabelsOfMetric(metric, labels)),
                  NameInMessages(metric));
}

Output CustomMetricSums(Builder& b, const Metric& metric, Output prediction, Output labels,
                        Output mask, Output sample_weights) {
  if (!b.ok()) return {};
  const TensorType own = LabelsOfMetric(metric, {b.dtype(labels), ExampleOf(b.shape(labels))});
  const Output taken = Cast(b, Taken(b, labels, own.shape), own.dtype);
  const Output values = CustomLossValues(b, AsLoss(metric), prediction, taken);
  if (!b.ok()) return {};
  const Status places =
      CheckPlaces(NameInMessages(metric), b.shape(values), mask.valid() ? b.shape(mask) : Shape(),
                  sample_weights.valid() ? b.shape(sample_weights) : Shape());
  return places.ok() ? MeanSums(b, values, mask, sample_weights) : b.Fail(places);
}

Status CheckPlaces(std::string_view key, const Shape& values, const Shape& mask,
                   const Shape& sample_weights) {
  for (const auto& [what, shape] :
       {std::pair{"the prediction has a mask", mask},
        std::pair{"the data have sample weights or class weights", sample_weights}}) {
    if (shape.rank() <= values.rank() &&
        std::equal(shape.dims().begin(), shape.dims().end(), values.dims().begin())) {
      continue;
    }
    return InvalidArgument(key, ": expected a value for each place, because ", what,
                           " for each place, of shape ", shape.ToString(),
                           " in a batch, got values of shape ", values.ToString(),
                           "; change the model, or remove the mask or the weights");
  }
  return OkStatus();
}

}  // namespace tfjob::model
