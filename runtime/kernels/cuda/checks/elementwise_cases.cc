#include <string_view>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {

std::vector<Comparison> UnaryCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const char* op : {"Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Erf", "Sin", "Cos",
                         "Relu", "Sigmoid", "Tanh", "ClipByValue"}) {
    PhiloxStream random(seed);
    const Shape shape = DrawShape(random);
    Attributes attributes;
    if (std::string_view(op) == "ClipByValue")
      attributes = {{"clip_value_min", -1.25}, {"clip_value_max", 0.1}};
    // Roots and logarithms of negative numbers are NaN.
    all.push_back({op, attributes, {{shape, DType::kFloat32, -1, 5, true}}, {{shape}}});
  }
  return all;
}

std::vector<Comparison> BinaryCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow", "ReluGrad",
                         "SigmoidGrad", "TanhGrad"}) {
    PhiloxStream random(seed);
    const Shape shape = DrawShape(random);
    all.push_back({op, {}, {{shape, DType::kFloat32, 0.5, 3, true}, {shape}}, {{shape}}, 4e-6});
  }
  return all;
}

std::vector<Comparison> BroadcastCases(uint64_t seed) {
  PhiloxStream random(seed);
  const Shape shape = DrawMatrix(random);
  std::vector<Comparison> all = {{"Sub", {}, {{shape}, {Shape({shape.dim(1)})}}, {{shape}}},
                                 {"Sub", {}, {{Shape({})}, {shape}}, {{shape}}},
                                 {"Sub", {}, {{Shape({shape.dim(0), 1})}, {shape}}, {{shape}}},
                                 {"BiasAdd", {}, {{shape}, {Shape({shape.dim(1)})}}, {{shape}}}};
  for (const Shape& from : {Shape({shape.dim(0), 1}), Shape({shape.dim(1)}), Shape({})})
    all.push_back({"BroadcastTo", {}, {{from}}, {{shape}}});
  return all;
}

std::vector<Comparison> ProgramCases(uint64_t seed) {
  PhiloxStream random(seed);
  const Shape shape = DrawMatrix(random);
  const std::vector<RandomOperand> inputs = {{shape}, {Shape({shape.dim(1)})}, {Shape({})}};
  std::vector<Comparison> all;
  for (const char* program :
       {"Mul i0 0.5; Add t0 i1; Relu t1", "Sub i0 i2; Mul t0 t0; Maximum t1 i1; Tanh t2",
        "ClipByValue i0 -1 i2", "Minimum i0 inf; Sigmoid t0; SigmoidGrad t1 i1",
        "Mul i0 0.5; Add t0 i1; Sub t1 t0; Maximum t2 t1; Add t3 t0"}) {
    all.push_back({"FusedElementwise", {{"program", std::string(program)}}, inputs, {{shape}}});
  }
  return all;
}

// The operands have different types, and some programs drop elements.
std::vector<Comparison> MixedProgramCases(uint64_t seed) {
  PhiloxStream random(PhiloxKey(seed, "mixed"));
  const auto type = [&random] {
    const DType types[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
    return types[random.Below(3)];
  };
  const Shape shape = DrawMatrix(random);
  const RandomOperand step{Shape({}), DType::kInt64, 0, 1000},
      seeds{Shape({}), DType::kInt64, 0, 9};
  std::vector<Comparison> all;
  for (const char* program :
       {"Mul i0 0.5; Add t0 i1; Erf t1; Mul t2 i3", "Sub i0 i2; Square t0; Mul t1 i1",
        "Dropout i0 0.25 7; Add t0 i1", "Mul i0 2; Dropout t0 0.5 70000; Add t1 t0; Dropout t2 0 3",
        "Dropout i1 0.1 4294967295; Mul t0 i3"}) {
    Attributes attributes = {{"program", std::string(program)}, {"dtype", DType::kFloat32}};
    std::vector<RandomOperand> inputs = {{shape, type()},
                                         {Shape({shape.dim(1)}), type()},
                                         {Shape({}), type()},
                                         {Shape({shape.dim(0), 1}), type()}};
    if (std::string_view(program).find("Dropout") != std::string_view::npos) {
      attributes.Set("random", true);
      attributes.Set("replica", static_cast<int64_t>(random.Below(3)));
      inputs.insert(inputs.end(), {step, seeds});
    }
    all.push_back({"FusedElementwise", attributes, inputs, {{shape, type()}}});
  }
  return all;
}

}  // namespace tfjob::kernels::cuda
