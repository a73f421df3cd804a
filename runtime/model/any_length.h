// Handles lengths that a model does not state. Keras writes such a length as null, like the second
// null in `batch_shape: [null, null, 3]`; the first one stands for the batch size. The data
// determine these lengths, which may differ between runs of a model, but not within a run.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/layer/arguments.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Return whether the shape, or any input shape that the model states, contains kAnyLength
// (arguments.h). No other shape may contain it.
bool HasAnyLength(const Shape& stated);
bool HasAnyLength(const Model& model);
// Returns the shape as text, with "null" for each unstated length.
std::string StatedText(const Shape& stated);
// Returns whether examples of this shape match the stated one.
bool FitsStated(const Shape& stated, const Shape& shape);
// Returns the shape in which examples of shape `array` are fed to an input whose shape is `stated`.
// As in Keras, a last axis of length 1 may be missing from the data or from the model. Returns
// `array` unchanged if the examples do not match.
Shape TakenAs(const Shape& stated, const Shape& array);

// Returns the types of the model's inputs, with all unstated lengths replaced by one length for
// which the layers are compatible. Requires a model that states its inputs. If there is no such
// length, returns the error that CallTypes reports for one of the lengths tried.
StatusOr<std::vector<TensorType>> ExampleInputs(const Model& model);

// Returns whether the shapes of the variables are independent of the unstated lengths, judging by
// two lengths. Requires a model that states its inputs.
bool HasFixedVariables(const Model& model);

// Returns the types after each call, like CallTypes (model.h), but with kAnyLength for each length
// that depends on the unstated lengths. Requires a model that states its inputs. Returns the same
// errors as ExampleInputs.
StatusOr<std::vector<std::vector<TensorType>>> StatedCallTypes(const Model& model);

}  // namespace tfjob::model
