// Describes the values that are read from a record, and stores the values of one example at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/data/images/decode/image_reader.h"
#include "runtime/data/text/sequence_encoder.h"
#include "runtime/data/text/vocabulary.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// Describes how a feature of an example is converted to a value of a fixed type and shape. An
// example without the feature is an error unless `variable` or `fill` is set.
struct ExampleFeature {
  std::string name;
  // The type of the value: kFloat32 or kInt64, or any type if `raw` is set.
  DType dtype = DType::kFloat32;
  // If set, the feature is a string whose bytes are the elements, each in little-endian order, as
  // for tf.io.decode_raw. Not every format supports such strings.
  bool raw = false;
  Shape shape;
  // If set, the feature may have fewer than shape.num_elements() values. The missing values are set
  // to `fill`, or to zero if `fill` is unset or `raw` is set. Otherwise, the feature must have
  // exactly shape.num_elements() values.
  bool variable = false;
  // If set, the feature is a sequence: the first axis of the shape is the step axis, and every step
  // must be complete. Requires `variable`. Must be set if both `variable` and `raw` are set; each
  // step is then a string.
  bool sequence = false;
  std::optional<double> fill = {};  // the value of elements that an example lacks
  // If set, the feature is a string that contains a JPEG or PNG image. The value is kFloat32 with
  // the shape [height, width, channels] of these options. Excludes `raw` and `variable`. Not every
  // format supports such strings.
  std::optional<ImageOptions> image = {};
  // If set, the feature is a string, and the value contains the ids of its tokens: kInt64 [n].
  // Excludes `raw`, `variable`, `fill` and `image`.
  std::optional<text::SequenceOptions> tokens = {};
  // If set, the feature consists of strings instead of numbers, and each string is converted to its
  // id (kInt64). Excludes `raw`, `sequence`, `image` and `tokens`.
  std::shared_ptr<const text::Vocabulary> vocabulary = nullptr;
};

// Returns how many values the feature has, for messages: "at most 3 values", "1 value" or
// "3 strings". The feature must not have `raw`, `image`, `tokens` or `sequence`.
std::string CountText(const ExampleFeature& feature);

// Fills `elements` with the value that replaces missing elements.
void FillMissing(const ExampleFeature& feature, std::span<std::byte> elements);

// Stores the features of one example at a time in tensors. Only one thread may use a row.
class ExampleRow {
 public:
  // `features` and the memory of `tensors` must outlive this object. There is one tensor per
  // feature, of the shape [examples, …].
  ExampleRow(const std::vector<ExampleFeature>& features, std::vector<Tensor> tensors);

  // From now on, stores a feature in another tensor. The examples of both tensors must have the
  // same number of bytes.
  void Replace(size_t number, Tensor tensor) { tensors_[number] = std::move(tensor); }
  // Starts filling example `example` of the tensors.
  void Begin(int64_t example);
  // Returns the index of a feature, or nullopt if no feature has this name.
  std::optional<size_t> Find(std::string_view name) const;
  const ExampleFeature& feature(size_t number) const { return features_[number]; }
  // Returns the memory for the elements of a feature. Returns InvalidArgument if the feature has
  // already been taken for this example.
  StatusOr<std::span<std::byte>> Take(size_t number);
  // Fills in the features that have not been taken. Returns InvalidArgument if one of them is
  // required. For the message, `describe` returns the expected content of a feature, such as "2
  // values".
  Status End(absl::FunctionRef<std::string(const ExampleFeature&)> describe);

 private:
  std::span<std::byte> Elements(size_t number);

  const std::vector<ExampleFeature>& features_;
  std::vector<Tensor> tensors_;
  std::map<std::string, size_t, std::less<>> numbers_;  // indices of the features, by name
  size_t example_ = 0;
  std::vector<bool> taken_;  // for each feature, whether it has been taken
};

}  // namespace tfjob::data
