#include "runtime/data/inspect/file_summary.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/fnv1a.h"

namespace tfjob::data {
namespace {

constexpr size_t kMostText = 40;  // the maximum number of bytes of a string to show
constexpr size_t kMostName = 100;

// Returns an escape sequence such as \x1b.
std::string HexEscape(char byte) {
  return absl::StrCat("\\x", absl::Hex(static_cast<unsigned char>(byte), absl::kZeroPad2));
}

// Returns the number of bytes of the UTF-8 character at the front, or 0 if there is none.
size_t CharacterSize(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return wrong ? 0 : size;
}

// Returns whether a character is shown unescaped. Returns false for control characters, and for
// characters that change the direction of text.
bool IsShown(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) >= ' ' && byte(0) != 0x7F;
  if (character.size() == 2) return !(byte(0) == 0xC2 && byte(1) < 0xA0);  // U+0080 to U+009F
  if (character.size() != 3 || byte(0) != 0xE2) return true;
  if (byte(1) == 0x80)  // U+200E, U+200F, and U+2028 to U+202E
    return byte(2) != 0x8E && byte(2) != 0x8F && (byte(2) < 0xA8 || byte(2) > 0xAE);
  return byte(1) != 0x81 || byte(2) < 0xA6 || byte(2) > 0xA9;  // U+2066 to U+2069
}

// Returns the text that is shown for a name. A long name is truncated between characters, and a
// checksum is added to distinguish the name from others with the same beginning.
std::string ShownName(std::string_view name) {
  if (name.size() <= kMostName) return Printable(name);
  size_t end = kMostName;
  while (end > kMostName - 4 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return StrCat(Printable(name.substr(0, end)), "… (", name.size(), " bytes, checksum ",
                absl::StrCat(absl::Hex(Fnv1a().Add(name).hash(), absl::kZeroPad16)), ")");
}

std::string CountOf(int64_t count, std::string_view one, std::string_view many) {
  return StrCat(count, " ", count == 1 ? one : many);
}

template <typename T>
std::string RangeText(const Range<T>& range) {
  return range.low == range.high ? StrCat(range.low) : StrCat(range.low, " to ", range.high);
}

// Returns the number of values and their sizes: "2 to 5 values of 784 bytes".
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

// Returns the range of the numbers: ", from -3 to 9". A field may have both integers and other
// numbers.
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
  if (field.total > 0) text += StrCat(", ", field.total, " in all");
  if (field.values.empty && !field.bytes.empty)
    text += StrCat(", of ", RangeText(field.bytes), " bytes");
  text += NumbersText(field);
  if (field.not_finite > 0) text += StrCat(", ", field.not_finite, " NaN or infinite");
  return text;
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    const std::string_view character = text.substr(0, std::max<size_t>(size, 1));
    if (size > 0 && IsShown(character)) {
      printable += character;
    } else {
      for (const char byte : character) printable += HexEscape(byte);
    }
    text.remove_prefix(character.size());
  }
  return printable;
}

void FieldSummary::AddNumber(double number) {
  if (std::isfinite(number)) {
    numbers.Add(number);
  } else {
    ++not_finite;
  }
}

FieldSummary* FileSummary::Field(std::string_view name, std::string_view kind) {
  const std::string shown = ShownName(name);
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

void FileSummary::AddExample(std::string_view place, std::vector<std::string> values) {
  if (values.size() > kMostFields) {
    const size_t more = values.size() - kMostFields;
    values.resize(kMostFields);
    values.push_back(StrCat("and ", more, " more"));
  }
  shown_.push_back({Printable(place), std::move(values)});
}

void FileSummary::AddDamage(std::string_view message) {
  if (damaged_++ < most_damage_) damage_.push_back(Printable(message));
}

std::string FileSummary::Heading() const {
  return StrCat(
      Printable(path_), ": ", format_, ", ", CountOf(examples, "example", "examples"), ", ",
      damaged_ == 0 ? "no damage" : CountOf(damaged_, "damaged place", "damaged places"), "\n");
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

std::string NamedText(std::string_view name, std::string_view value) {
  return StrCat(ShownName(name), ": ", value);
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
