#include "runtime/data/inspect/file_summary.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

namespace tfjob::data {
namespace {

constexpr size_t kMostText = 40;  // bytes of a string that are shown
constexpr size_t kMostName = 100;

// Returns the text with escape sequences in place of control characters, because the terminal must
// not interpret what a file contains.
std::string Printable(std::string_view text) {
  std::string printable;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    printable += control ? absl::CHexEscape(absl::string_view(&c, 1)) : std::string(1, c);
  }
  return printable;
}

std::string CountOf(int64_t count, std::string_view one, std::string_view many) {
  return StrCat(count, " ", count == 1 ? one : many);
}

template <typename T>
std::string RangeText(const Range<T>& range) {
  return range.low == range.high ? StrCat(range.low) : StrCat(range.low, " to ", range.high);
}

// Returns "2 to 5 values of 784 bytes".
std::string ValuesText(const FieldSummary& field) {
  const bool one = field.values.low == 1 && field.values.high == 1;
  std::string text = StrCat(RangeText(field.values), one ? " value" : " values");
  if (!field.bytes.empty) text += StrCat(" of ", RangeText(field.bytes), " bytes");
  return text;
}

template <typename T>
std::string LimitsText(const Range<T>& range) {
  if (range.low == range.high) return StrCat(", always ", range.low);
  return StrCat(", from ", range.low, " to ", range.high);
}

// Returns ", from -3 to 9". A field may have both integers and other numbers.
std::string NumbersText(const FieldSummary& field) {
  if (field.integers.empty && field.numbers.empty) return {};
  if (field.numbers.empty) return LimitsText(field.integers);
  Range<double> all = field.numbers;
  if (!field.integers.empty) {
    all.Add(static_cast<double>(field.integers.low));
    all.Add(static_cast<double>(field.integers.high));
  }
  return LimitsText(all);
}

std::string FieldText(const FieldSummary& field) {
  std::string text = StrCat("  ", field.name, ": ");
  if (!field.problem.empty()) return text + Printable(field.problem);
  text += field.kind;
  if (field.shape) text += StrCat(" ", field.shape->ToString());
  text += StrCat(", in ", CountOf(field.examples, "example", "examples"));
  if (!field.steps.empty) text += StrCat(", ", RangeText(field.steps), " steps");
  if (!field.values.empty) text += StrCat(field.steps.empty ? ", " : " of ", ValuesText(field));
  if (field.values.empty && !field.bytes.empty)
    text += StrCat(", of ", RangeText(field.bytes), " bytes");
  text += NumbersText(field);
  if (field.not_finite > 0) text += StrCat(", ", field.not_finite, " NaN or infinite");
  return text;
}

}  // namespace

void FieldSummary::AddNumber(double number) {
  if (std::isfinite(number)) {
    numbers.Add(number);
  } else {
    ++not_finite;
  }
}

FieldSummary* FileSummary::Field(std::string_view name, std::string_view kind) {
  const std::string shown = Printable(name.substr(0, kMostName));
  const auto key = std::tie(shown, kind);
  const auto at = std::lower_bound(
      fields_.begin(), fields_.end(), key, [](const FieldSummary& field, const auto& wanted) {
        return std::tuple<std::string_view, std::string_view>(field.name, field.kind) < wanted;
      });
  if (at != fields_.end() && at->name == shown && at->kind == kind) return &*at;
  if (fields_.size() == kMostFields) {
    more_fields_ = true;
    return nullptr;
  }
  FieldSummary field;
  field.name = shown;
  field.kind = kind;
  return &*fields_.insert(at, std::move(field));
}

void FileSummary::AddExample(std::string place, std::vector<std::string> values) {
  shown_.push_back({std::move(place), std::move(values)});
}

void FileSummary::AddDamage(std::string_view message) {
  if (damaged_++ < most_damage_) damage_.push_back(Printable(message));
}

std::string FileSummary::Heading() const {
  return StrCat(path_, ": ", format_, ", ", CountOf(examples, "example", "examples"), ", ",
                damaged_ == 0 ? "no damage" : CountOf(damaged_, "damaged place", "damaged places"),
                "\n");
}

std::string FileSummary::Describe() const {
  std::string text = Heading();
  if (!fields_.empty()) text += "fields:\n";
  for (const FieldSummary& field : fields_) text += FieldText(field) + "\n";
  if (more_fields_) text += StrCat("  and more than ", kMostFields, " in all\n");
  if (!shown_.empty()) text += "first examples:\n";
  for (const Example& example : shown_) {
    text += StrCat("  ", example.place, "\n");
    for (const std::string& value : example.values) text += StrCat("    ", value, "\n");
  }
  return text + DescribeDamage().substr(Heading().size());
}

std::string FileSummary::DescribeDamage() const {
  std::string text = Heading();
  if (damaged_ > 0) text += "damaged:\n";
  for (const std::string& message : damage_) text += StrCat("  ", message, "\n");
  const int64_t more = damaged_ - static_cast<int64_t>(damage_.size());
  if (more > 0) text += StrCat("  and ", more, " more\n");
  return text;
}

std::string ValueText(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, kMostText);
  const std::string shown =
      StrCat("\"", absl::CHexEscape(absl::string_view(first.data(), first.size())), "\"");
  if (bytes.size() <= kMostText) return shown;
  return StrCat(shown, "… (", bytes.size(), " bytes)");
}

std::string ListText(const std::vector<std::string>& first, int64_t count) {
  if (count == 0) return "no values";
  const int64_t more = count - static_cast<int64_t>(first.size());
  return StrCat(absl::StrJoin(first, ", "), more > 0 ? StrCat(" and ", more, " more") : "");
}

}  // namespace tfjob::data
