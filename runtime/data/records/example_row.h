// Describes the values that are read from a record, and stores the values of one example at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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
  // `features` must outlive this object. There is one tensor per feature, of the shape
  // [examples, …].
  ExampleRow(const std::vector<ExampleFeature>& features, std::vector<Tensor> tensors);

  // From now on, stores a feature in another tensor. The examples of both tensors must have the
  // same number of bytes.
  void Replace(size_t number, Tensor tensor) {
    tensors_[number] = std::move(tensor);
    places_[number].begin = tensors_[number].bytes().data();
  }
  // Starts filling example `example` of the tensors.
  void Begin(int64_t example);
  // Returns the index of a feature, or nullopt if no feature has this name. This is fastest if the
  // features of all examples are looked up in the same order, because Find first tries the feature
  // that came next in an earlier example.
  std::optional<size_t> Find(std::string_view name) {
    const size_t likely = next_[last_];
    if (likely >= features_.size() || features_[likely].name != name) return FindByName(name);
    last_ = likely + 1;
    return likely;
  }
  const ExampleFeature& feature(size_t number) const { return features_[number]; }
  // Returns the memory for the elements of a feature. Returns InvalidArgument if the feature has
  // already been taken for this example.
  StatusOr<std::span<std::byte>> Take(size_t number) {
    if (taken_[number] != 0) return Twice();
    taken_[number] = 1;
    ++count_;
    return Elements(number);
  }
  // Fills in the features that have not been taken. Returns InvalidArgument if one of them is
  // required. For the message, `describe` returns the expected content of a feature, such as "2
  // values".
  Status End(absl::FunctionRef<std::string(const ExampleFeature&)> describe) {
    return count_ == features_.size() ? OkStatus() : FillIn(describe);
  }

 private:
  // Where a feature is stored.
  struct Place {
    std::byte* begin = nullptr;  // of the first example
    size_t bytes = 0;            // of each example
  };

  std::span<std::byte> Elements(size_t number) {
    const Place& place = places_[number];
    return {place.begin + example_ * place.bytes, place.bytes};
  }
  std::optional<size_t> FindByName(std::string_view name);
  Status FillIn(absl::FunctionRef<std::string(const ExampleFeature&)> describe);
  static Status Twice();

  const std::vector<ExampleFeature>& features_;
  std::vector<Tensor> tensors_;                           // one per feature
  std::vector<Place> places_;                             // one per feature, in its tensor
  std::unordered_map<std::string_view, size_t> numbers_;  // indices of the features, by name
  size_t example_ = 0;
  std::vector<uint8_t> taken_;  // for each feature, 1 if it has been taken
  size_t count_ = 0;            // how many features have been taken
  // The feature that was found last in this example, plus 1; 0 if none has been found.
  size_t last_ = 0;
  // For each value of last_, the feature that Find returned next, most recently. An index that does
  // not exist stands for no feature.
  std::vector<size_t> next_;
};

}  // namespace tfjob::data
