// Handles lengths that a model does not state: Keras' null in `batch_shape: [null, null, 3]`. The
// data determine them. They may differ between runs of a model, but not within one.
#pragma once

#include <string>
#include <vector>

#include "runtime/model/layer/arguments.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Only the shapes that a model states for its inputs may contain kAnyLength (arguments.h).
bool HasAnyLength(const Shape& stated);
bool HasAnyLength(const Model& model);
// Returns the shape as text, with "null" for any length.
std::string StatedText(const Shape& stated);
// Returns whether examples of this shape fit the stated one.
bool FitsStated(const Shape& stated, const Shape& shape);
// Returns the shape that the examples of an array have when they are fed to an input. As in Keras,
// a last axis of 1 may be missing in the data or in the model. Returns `array` if it does not fit.
Shape TakenAs(const Shape& stated, const Shape& array);

// Returns types for the model's inputs in which every unstated length is replaced by an example
// length. The example is chosen so that the layers fit together. Requires a model that states its
// inputs. If no example fits, returns the error of CallTypes for one of the examples.
StatusOr<std::vector<TensorType>> ExampleInputs(const Model& model);

// Returns the types after each call, as CallTypes (model.h) does. Lengths that depend on unstated
// lengths are kAnyLength. Requires a model that states its inputs. Returns the errors of
// ExampleInputs.
StatusOr<std::vector<std::vector<TensorType>>> StatedCallTypes(const Model& model);

}  // namespace tfjob::model
