// Reads and writes constraints of variables in Keras' forms. optimizer/constraint.h defines them.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/optimizer/constraint.h"

namespace tfjob::model {

// Reads "non_neg", {MaxNorm: {max_value: 3}}, {class_name, config}. For anything else, returns
// InvalidArgument with a message that names the path, the class or argument, and what is supported.
StatusOr<optimizer::Constraint> ReadConstraint(const JsonField& field);

// Writes Keras 3's form; null for kNone.
Json WriteConstraint(const optimizer::Constraint& constraint);

}  // namespace tfjob::model
