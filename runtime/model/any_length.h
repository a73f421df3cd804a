// Handles lengths that a model does not state. Keras writes such a length as null: in `batch_shape:
// [null, null, 3]`, the first null is the batch size, and the second one is an unstated length. The
// data determine the unstated lengths, which may differ between runs of a model, but not within a
// run.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/layer/arguments.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Return whether the shape, or any input shape that the model states, contains kAnyLength
// (arguments.h). Only these stated shapes may contain kAnyLength.
bool HasAnyLength(const Shape& stated);
bool HasAnyLength(const Model& model);
// Converts the shape to text, with "null" for each unstated length.
std::string StatedText(const Shape& stated);
// Returns whether examples of shape `shape` match the stated shape.
bool FitsStated(const Shape& stated, const Shape& shape);
// Returns the shape of examples of shape `array` when they are fed to an input with shape `stated`.
// As in Keras, a last axis of length 1 may be missing from either shape. Returns `array` unchanged
// if the shapes do not match.
Shape TakenAs(const Shape& stated, const Shape& array);

// Returns the types of the model's inputs, with all unstated lengths replaced by a single length
// for which the layers are compatible. The model must state its inputs. If no such length is found,
// returns the error that CallTypes reports for one of the lengths tried.
StatusOr<std::vector<TensorType>> ExampleInputs(const Model& model);

// Returns whether the shapes of the variables are independent of the unstated lengths, based on a
// comparison of two lengths. The model must state its inputs.
bool HasFixedVariables(const Model& model);

// Like CallTypes (model.h), returns the output types of each call, but with kAnyLength for each
// length that depends on the unstated lengths. The model must state its inputs. Returns the same
// errors as ExampleInputs.
StatusOr<std::vector<std::vector<TensorType>>> StatedCallTypes(const Model& model);

}  // namespace tfjob::model
