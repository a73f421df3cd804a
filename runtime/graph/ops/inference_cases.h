// Checks inference functions against a table of cases.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "runtime/graph/op.h"

namespace tfjob::graph {

using Ints = std::vector<int64_t>;
using Text = std::string;

inline constexpr DType kF32 = DType::kFloat32;

struct Case {
  const char* op;
  std::vector<TensorType> inputs;
  Attributes attributes;
  std::string expected;  // the output types, or "refused: " and the reason
};

inline TensorType F32(Shape shape = {}) {
  return {kF32, std::move(shape)};
}
inline TensorType F64(Shape shape = {}) {
  return {DType::kFloat64, std::move(shape)};
}
inline TensorType I32(Shape shape = {}) {
  return {DType::kInt32, std::move(shape)};
}
inline TensorType I64(Shape shape = {}) {
  return {DType::kInt64, std::move(shape)};
}
inline TensorType Bytes(Shape shape = {}) {
  return {DType::kUInt8, std::move(shape)};
}
inline TensorType Bool(Shape shape = {}) {
  return {DType::kBool, std::move(shape)};
}

// Replaces the start of the message, which names the op and its inputs, with "refused: ". A message
// that does not start this way is returned unchanged.
inline std::string Reason(const Case& test, std::string_view message) {
  const size_t end = message.find("): ");
  if (!message.starts_with(Text(test.op) + "(") || end == Text::npos) return Text(message);
  return "refused: " + Text(message.substr(end + 3));
}

inline std::string Infer(const Case& test, Attributes& attributes) {
  const auto types = InferTypes(test.op, test.inputs, attributes);
  if (!types.ok()) return Reason(test, Message(types.status()));
  std::string text;
  for (const TensorType& type : *types) text += (text.empty() ? "" : " ") + type.ToString();
  return text;
}

inline void Check(const std::vector<Case>& cases) {
  for (const Case& test : cases) {
    Attributes attributes = test.attributes;
    std::string inputs;
    for (const TensorType& input : test.inputs) inputs += " " + input.ToString();
    EXPECT_EQ(Infer(test, attributes), test.expected)
        << test.op << inputs << " " << test.attributes.ToString();
  }
}

// Checks that every op in `names` infers `expected` from `inputs`.
inline void CheckAll(const std::vector<const char*>& names, const std::vector<TensorType>& inputs,
                     const std::string& expected) {
  for (const char* name : names) Check({{name, inputs, {}, expected}});
}

inline const std::string kFloats = "refused: expected a float type";
inline const std::string kNumbers = "refused: expected float32, float64, int32 or int64";
inline const std::string kOneType = "refused: expected inputs of one dtype; add a Cast";
inline const std::string kScalars = "refused: expected step and seed as int64[]";

}  // namespace tfjob::graph
