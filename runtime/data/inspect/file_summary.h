// Summarises a file of examples: its fields, the number of examples, the first examples, and the
// damaged places.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/shape.h"

namespace tfjob::data {

// Keeps the smallest and the largest of the added values.
template <typename T>
struct Range {
  T low{}, high{};
  bool empty = true;

  void Add(T value) {
    low = empty ? value : std::min(low, value);
    high = empty ? value : std::max(high, value);
    empty = false;
  }
};

// Summarises the values of all fields of the same name and kind.
struct FieldSummary {
  std::string name;
  std::string kind;  // "int64_list", "float32"
  int64_t examples = 0;
  std::optional<Shape> shape;  // of one example, for formats whose fields have shapes
  Range<int64_t> steps;        // of a sequence
  Range<int64_t> values;       // in an example or a step, for formats with lists
  int64_t total = 0;           // total number of values; 0: not counted
  Range<int64_t> bytes;        // the bytes in a string
  Range<int64_t> integers;
  Range<double> numbers;   // the finite numbers
  int64_t not_finite = 0;  // NaN and infinite numbers
  std::string problem;     // why the field cannot be read; "" if it can

  void AddNumber(double number);
};

// Collects the data of a summary. Movable, but not copyable.
class FileSummary {
 public:
  // Lists at most `most_damage` damaged places, but counts all of them.
  FileSummary(std::string path, std::string format, int64_t most_damage)
      : path_(std::move(path)), format_(std::move(format)), most_damage_(most_damage) {}
  FileSummary(FileSummary&&) = default;
  FileSummary& operator=(FileSummary&&) = default;

  int64_t examples = 0;  // the number of intact examples

  // Returns the field of this name and kind. Adds the field if it is missing. The pointer stays
  // valid until the next call. If there are too many fields to list, returns null, and the summary
  // states that fields are missing.
  FieldSummary* Field(std::string_view name, std::string_view kind);
  // Adds one of the first examples: its place in the file, and one line of text per value. At most
  // kMostFields lines are shown.
  void AddExample(std::string_view place, std::vector<std::string> values);
  void AddDamage(std::string_view message);
  int64_t damaged() const { return damaged_; }

  // Return the summary as lines of text: the whole summary, or only the counts and the damaged
  // places.
  std::string Describe() const;
  std::string DescribeDamage() const;

  static constexpr size_t kMostFields = 1000;

 private:
  struct Example {
    std::string place;
    std::vector<std::string> values;
  };

  std::string Heading() const;

  std::string path_, format_;
  int64_t most_damage_;
  std::vector<FieldSummary> fields_;  // sorted by name and kind
  bool more_fields_ = false;
  std::vector<Example> shown_;
  int64_t damaged_ = 0;
  std::vector<std::string> damage_;  // the first messages
};

// Returns the text with escape sequences in place of control characters, characters that change the
// direction of text, and bytes that are not UTF-8. A terminal then cannot interpret the content or
// the name of a file.
std::string Printable(std::string_view text);
// Returns the beginning of a string as printable text: "\"a\\x00\"… (784 bytes)".
std::string ValueText(std::string_view bytes);
// Returns "name: value", with the name as printable text. The value must already be printable.
std::string NamedText(std::string_view name, std::string_view value);
// Describes a list of `count` values: "1.5, 2 and 8 more". `first` contains the first values, which
// must be printable.
std::string ListText(const std::vector<std::string>& first, int64_t count);
// The maximum number of values that are shown of a list.
inline constexpr int64_t kMostValues = 8;

}  // namespace tfjob::data
