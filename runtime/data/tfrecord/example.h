// Reads tf.train.Example and tf.train.SequenceExample in protobuf's wire format, without copying
// their contents. Treats every byte as untrusted. Stricter than protobuf: a feature with two lists,
// or a list with an unknown field, is an error. Treats an Example as a SequenceExample without
// feature lists, because both have the same encoding.
// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/example.proto
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"

namespace tfjob::data {

enum class ListKind { kBytes, kFloat, kInt64 };
std::string_view Name(ListKind kind);  // "a bytes_list", "a float_list", "an int64_list"

// Refers to one feature of an example, or of one step of a sequence.
struct Feature {
  std::string_view name;
  ListKind kind = ListKind::kBytes;
  std::string_view list;  // the encoded BytesList, FloatList or Int64List
  bool has_list = true;   // if false, there is no list, and `kind` is meaningless
};

// Refers to a feature list: a sequence with one feature per step.
struct FeatureSteps {
  std::string_view name;
  std::string_view steps;  // the encoded FeatureList
};

// Receives the content of an example, in the order of its bytes. An error stops the visit.
struct ExampleVisitor {
  // Called for each feature that has a list.
  absl::FunctionRef<Status(const Feature&)> on_feature;
  // Called for each feature list. Only a SequenceExample can have feature lists.
  absl::FunctionRef<Status(const FeatureSteps&)> on_steps;
};

// Passes the features and feature lists of an example to the visitor, without reading their values.
// Returns the first error from the visitor, with the feature's name, or InvalidArgument if the
// bytes are not an example.
Status VisitExample(std::string_view example, const ExampleVisitor& visitor);

// Calls `visit` for the feature of each step, in order, including features without a list. Returns
// the first error from `visit`, or InvalidArgument if the bytes are not a FeatureList. Errors in a
// step start with the index of the step, counted from 0.
Status VisitSteps(const FeatureSteps& steps, absl::FunctionRef<Status(const Feature&)> visit);

// Read a list, store its first values.size() values, and return the total number of its values.
// Return InvalidArgument if the bytes are not a list of this kind.
StatusOr<size_t> ReadBytesList(std::string_view list, std::span<std::string_view> values);
StatusOr<size_t> ReadFloatList(std::string_view list, std::span<float> values);
StatusOr<size_t> ReadInt64List(std::string_view list, std::span<int64_t> values);

// Calls `visit` for each string of a bytes_list. Returns the first error from `visit`, or
// InvalidArgument if the bytes are not a bytes_list.
Status VisitBytesList(std::string_view list,
                      absl::FunctionRef<Status(std::string_view value)> visit);

// Returns InvalidArgument if the bytes are not an example, or if one of its lists cannot be read.
Status CheckExample(std::string_view example);

}  // namespace tfjob::data
