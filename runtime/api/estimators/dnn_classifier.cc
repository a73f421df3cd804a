// Implements DNNClassifier.
#include <utility>

#include "runtime/api/estimators/canned_estimators.h"
#include "runtime/api/estimators/estimator_data.h"
#include "runtime/api/layers.h"
#include "runtime/api/optimizers.h"

namespace tfjob::api {
namespace {

// TensorFlow's default learning rate (tensorflow_estimator/python/estimator/canned/dnn.py).
constexpr double kDnnRate = 0.05;

StatusOr<Model> DnnModel(const DNNClassifier& classifier) {
  ASSIGN_OR_RETURN(const int64_t logits, LogitsOf(classifier.n_classes));
  ASSIGN_OR_RETURN(const FeatureInputs made, InputsOf(classifier.feature_columns));
  if (classifier.hidden_units.empty())
    return InvalidArgument("hidden_units: expected the size of at least one layer");
  Symbol value = made.features;
  for (const int64_t units : classifier.hidden_units) {
    value = Dense{.units = units, .activation = classifier.activation}(value);
    if (classifier.dropout != 0) value = Dropout{.rate = classifier.dropout}(value);
  }
  Model model = Functional(made.inputs, Dense{.units = logits, .name = "logits"}(value), "dnn");
  RETURN_IF_ERROR(FromPublic(model.status()));
  return model;
}

}  // namespace

DNNClassifier::operator Estimator() const {
  const StatusOr<Model> model = DnnModel(*this);
  if (!model.ok()) return InvalidEstimator(config, Annotate(model.status(), "DNNClassifier"));
  const Optimizer chosen =
      optimizer ? WithDefaultRate(*optimizer, kDnnRate) : Adagrad{.learning_rate = kDnnRate};
  return Estimator(*model, OptionsOfClassifier(n_classes, chosen), config);
}

}  // namespace tfjob::api
