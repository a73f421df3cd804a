// Declares the formulas of the losses, by family. Private to losses and metrics.
//
// Each function receives a prediction [b, …, c] and labels in the form that the loss requires
// (FormOf), and returns one value per place. Unless the labels are classes, they have the shape of
// the prediction.
#pragma once

#include <vector>

#include "runtime/model/losses/loss.h"

namespace tfjob::model::losses {

using graph::Builder;
using graph::Output;

// Keras' backend epsilon.
inline constexpr double kEpsilon = 1e-7;

// Compute expressions that several formulas use.
Output Number(Builder& b, Output like, double value);
Output Plus(Builder& b, Output x, double value);
Output Times(Builder& b, Output x, double value);
Output OneMinus(Builder& b, Output x);
// Returns the mean over the last axis, or `x` itself if it has only the batch axis.
Output MeanOfLast(Builder& b, Output x);
// Returns log(1 + exp(x)) without overflow.
Output LogOfOneMoreThanExp(Builder& b, Output x);
// Returns log Σ exp over the elements. Each of them must be finite and have the same shape.
Output LogSumExp(Builder& b, const std::vector<Output>& elements);
// Stands for log 0: the exponential of the difference from any other logarithm is 0.
inline constexpr double kLogOfZero = -1e30;
// Converts the labels to the type and the shape of the prediction.
Output LabelsLike(Builder& b, Output labels, Output prediction);

// Implemented in crossentropy.cc:
Output SparseCategoricalCrossentropy(Builder& b, const Loss& loss, Output p, Output y);
Output CategoricalCrossentropy(Builder& b, const Loss& loss, Output p, Output y);
Output ClippedCrossentropy(Builder& b, const Loss& loss, Output p, Output y);
Output BinaryCrossentropy(Builder& b, const Loss& loss, Output p, Output y);
Output BinaryFocalCrossentropy(Builder& b, const Loss& loss, Output p, Output y);
Output CategoricalFocalCrossentropy(Builder& b, const Loss& loss, Output p, Output y);
Output CategoricalGeneralizedCrossEntropy(Builder& b, const Loss& loss, Output p, Output y);

// Implemented in regression.cc:
Output MeanSquaredError(Builder& b, const Loss& loss, Output p, Output y);
Output MeanAbsoluteError(Builder& b, const Loss& loss, Output p, Output y);
Output MeanAbsolutePercentageError(Builder& b, const Loss& loss, Output p, Output y);
Output MeanSquaredLogarithmicError(Builder& b, const Loss& loss, Output p, Output y);
Output Huber(Builder& b, const Loss& loss, Output p, Output y);
Output LogCosh(Builder& b, const Loss& loss, Output p, Output y);
Output Poisson(Builder& b, const Loss& loss, Output p, Output y);
Output KlDivergence(Builder& b, const Loss& loss, Output p, Output y);
Output CosineSimilarity(Builder& b, const Loss& loss, Output p, Output y);

// Implemented in hinge.cc:
Output Hinge(Builder& b, const Loss& loss, Output p, Output y);
Output SquaredHinge(Builder& b, const Loss& loss, Output p, Output y);
Output CategoricalHinge(Builder& b, const Loss& loss, Output p, Output y);

// Implemented in overlap.cc:
Output Dice(Builder& b, const Loss& loss, Output p, Output y);
Output Tversky(Builder& b, const Loss& loss, Output p, Output y);

// Implemented in circle.cc and ctc.cc:
Output Circle(Builder& b, const Loss& loss, Output p, Output y);
Output Ctc(Builder& b, const Loss& loss, Output p, Output y);

}  // namespace tfjob::model::losses
