// Describes what a file of examples contains: its fields, the number of its examples, the first
// examples, and the damaged places.
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

// The smallest and the largest of some values.
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

// Summarises all values that have the same name and kind.
struct FieldSummary {
  std::string name;
  std::string kind;  // "int64_list", "float32"
  int64_t examples = 0;
  std::optional<Shape> shape;  // of one example, for formats whose fields have shapes
  Range<int64_t> steps;        // of a sequence
  Range<int64_t> values;       // of an example or of a step, for formats with lists
  int64_t total = 0;           // of the values of all examples; 0: not counted
  Range<int64_t> bytes;        // in a string
  Range<int64_t> integers;
  Range<double> numbers;   // the finite ones
  int64_t not_finite = 0;  // NaN and infinite numbers
  std::string problem;     // why the field cannot be read; "" if it can

  void AddNumber(double number);
};

// Movable, not copyable.
class FileSummary {
 public:
  // At most `most_damage` damaged places are listed; all are counted.
  FileSummary(std::string path, std::string format, int64_t most_damage)
      : path_(std::move(path)), format_(std::move(format)), most_damage_(most_damage) {}
  FileSummary(FileSummary&&) = default;
  FileSummary& operator=(FileSummary&&) = default;

  int64_t examples = 0;  // the intact ones

  // Returns the field of this name and kind, and adds it if it is missing. The pointer stays valid
  // until the next call. Returns null, and notes this in the summary, if the file has too many
  // fields to list.
  FieldSummary* Field(std::string_view name, std::string_view kind);
  // Adds one of the first examples: its place in the file, and one line per value, of which at most
  // kMostFields are shown.
  void AddExample(std::string_view place, std::vector<std::string> values);
  void AddDamage(std::string_view message);
  int64_t damaged() const { return damaged_; }

  // Return the summary as lines: all of it, or only the counts and the damaged places.
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

// Returns the text, with escape sequences in place of bytes that are not UTF-8 and characters that
// are not shown, because a terminal must not interpret what a file or its name contains.
std::string Printable(std::string_view text);
// Return a value, or the first of several, as text for a terminal: "7", "1.5, 2 and 8 more",
// "\"a\\x00\"… (784 bytes)".
std::string ValueText(std::string_view bytes);
// Returns "name: value"; the value must be text for a terminal.
std::string NamedText(std::string_view name, std::string_view value);
std::string ListText(const std::vector<std::string>& first, int64_t count);
// At most this many values of a list are shown.
inline constexpr int64_t kMostValues = 8;

}  // namespace tfjob::data
