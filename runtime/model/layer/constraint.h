// Reads and writes, in Keras' forms, the constraints of variables that optimizer/constraint.h
// defines.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/optimizer/constraint.h"

namespace tfjob::model {

// Reads a constraint such as "non_neg" or {MaxNorm: {max_value: 3}}, or in Keras' form {class_name,
// config}. For anything else, returns InvalidArgument; the message contains the path, the class or
// argument, and the supported choices.
StatusOr<optimizer::Constraint> ReadConstraint(const JsonField& field);

// Returns the constraint in the form of Keras 3, or null for kNone.
Json WriteConstraint(const optimizer::Constraint& constraint);

}  // namespace tfjob::model
