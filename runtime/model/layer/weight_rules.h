// Defines the regularizer and the constraint of a layer's variable: Keras' arguments
// NAME_regularizer and NAME_constraint.
#pragma once

#include "runtime/model/layer/regularizer.h"
#include "runtime/optimizer/constraint.h"

namespace tfjob::model {

struct WeightRules {
  Regularizer regularizer = {};
  optimizer::Constraint constraint = {};
};

}  // namespace tfjob::model
