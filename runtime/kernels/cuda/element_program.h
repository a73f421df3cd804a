// Parses elementwise programs (ops.md, "FusedElementwise"), and decides where the kernel stores the
// results of steps.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/status.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {

struct NamedOp {
  const char* name;
  ElementOp op;
  int operands;
};
inline constexpr NamedOp kElementOps[] = {
    {"Add", ElementOp::kAdd, 2},           {"Sub", ElementOp::kSub, 2},
    {"Mul", ElementOp::kMul, 2},           {"Div", ElementOp::kDiv, 2},
    {"Maximum", ElementOp::kMaximum, 2},   {"Minimum", ElementOp::kMinimum, 2},
    {"Pow", ElementOp::kPow, 2},           {"Neg", ElementOp::kNeg, 1},
    {"Abs", ElementOp::kAbs, 1},           {"Square", ElementOp::kSquare, 1},
    {"Sqrt", ElementOp::kSqrt, 1},         {"Rsqrt", ElementOp::kRsqrt, 1},
    {"Exp", ElementOp::kExp, 1},           {"Log", ElementOp::kLog, 1},
    {"Erf", ElementOp::kErf, 1},           {"Sin", ElementOp::kSin, 1},
    {"Cos", ElementOp::kCos, 1},           {"Relu", ElementOp::kRelu, 1},
    {"Sigmoid", ElementOp::kSigmoid, 1},   {"Tanh", ElementOp::kTanh, 1},
    {"ReluGrad", ElementOp::kReluGrad, 2}, {"SigmoidGrad", ElementOp::kSigmoidGrad, 2},
    {"TanhGrad", ElementOp::kTanhGrad, 2}, {"ClipByValue", ElementOp::kClip, 3},
    {"Copy", ElementOp::kCopy, 1},        // only in programs of this package
    {"Dropout", ElementOp::kDropout, 1},  // followed by rate and op_id
};

struct ProgramNeeds {
  bool slots = false;
  bool random_words = false;
};

// Parses a program that has `inputs` inputs, and writes its steps to the parameter. Returns
// InvalidArgument if the program is wrong, and Unimplemented if it contains an unknown op.
StatusOr<ProgramNeeds> WriteProgram(const std::string& program, size_t inputs,
                                    ElementwiseParameter& parameter);

}  // namespace tfjob::kernels::cuda
