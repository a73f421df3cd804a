// Inference functions of the op table: they derive the types of the outputs from the types of
// the inputs and the attributes. Errors contain what was expected; InferTypes prepends the op
// and its inputs.
#pragma once

#include "runtime/graph/op.h"

namespace tfjob::graph {

using InferResult = StatusOr<std::vector<TensorType>>;

// Sources and variables: from the attributes dtype and shape.
InferResult InferFromAttributes(InferenceContext& context);
InferResult InferConst(InferenceContext& context);
InferResult InferRandom(InferenceContext& context);
InferResult InferWrite(InferenceContext& context);
InferResult InferApplyOptimizer(InferenceContext& context);

// Elementwise.
InferResult InferSame(InferenceContext& context);         // any
InferResult InferSameNumeric(InferenceContext& context);  // float32, float64, int32, int64
InferResult InferSameFloat(InferenceContext& context);
InferResult InferClip(InferenceContext& context);
InferResult InferGradOfSame(InferenceContext& context);  // two floats of equal type
InferResult InferBinaryNumeric(InferenceContext& context);
InferResult InferBinaryFloat(InferenceContext& context);
InferResult InferEqual(InferenceContext& context);
InferResult InferCompare(InferenceContext& context);
InferResult InferSelect(InferenceContext& context);
InferResult InferCast(InferenceContext& context);
InferResult InferDropout(InferenceContext& context);
InferResult InferFusedElementwise(InferenceContext& context);

// Linear algebra and losses.
InferResult InferMatMul(InferenceContext& context);
InferResult InferMatMulAccumulate(InferenceContext& context);
InferResult InferFusedMatMul(InferenceContext& context);
InferResult InferBiasAdd(InferenceContext& context);
InferResult InferBiasAddGrad(InferenceContext& context);
InferResult InferRows(InferenceContext& context);  // a float of rank 1 or more, as Softmax takes
InferResult InferSparseCrossEntropy(InferenceContext& context);
InferResult InferCrossEntropy(InferenceContext& context);

// Reductions and shapes.
InferResult InferReduceNumeric(InferenceContext& context);
InferResult InferReduceFloat(InferenceContext& context);
InferResult InferArgMax(InferenceContext& context);
InferResult InferReshape(InferenceContext& context);
InferResult InferTranspose(InferenceContext& context);
InferResult InferBroadcastTo(InferenceContext& context);

bool IsFloat(DType dtype);
bool IsNumeric(DType dtype);

}  // namespace tfjob::graph
