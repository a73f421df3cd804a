// Reads tf.train.Example in protobuf's wire format, without copying it. Trusts no byte of it, and
// is stricter than protobuf: a feature with two lists, or a list with an unknown field, is an
// error.
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

// One feature of an example.
struct Feature {
  std::string_view name;
  ListKind kind = ListKind::kBytes;
  std::string_view list;  // the encoded BytesList, FloatList or Int64List
};

// Calls `visit` for each feature that has a list, in the order of the bytes. Returns the first
// error that `visit` returns, or InvalidArgument if the bytes are not an example. Does not read the
// lists.
Status VisitFeatures(std::string_view example, absl::FunctionRef<Status(const Feature&)> visit);

// Read a list, and return the number of its values. Only the first values.size() of them are
// stored. Return InvalidArgument if the bytes are not such a list.
StatusOr<size_t> ReadBytesList(std::string_view list, std::span<std::string_view> values);
StatusOr<size_t> ReadFloatList(std::string_view list, std::span<float> values);
StatusOr<size_t> ReadInt64List(std::string_view list, std::span<int64_t> values);

// Returns InvalidArgument if the bytes are not an example whose lists can all be read.
Status CheckExample(std::string_view example);

}  // namespace tfjob::data
