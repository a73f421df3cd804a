#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/json_view.h"
#include "runtime/data/inspect/summarise_records.h"
#include "runtime/data/jsonl/jsonl.h"
#include "runtime/data/jsonl/object_parser.h"

namespace tfjob::data {
namespace {

using Lengths = std::vector<int64_t>;

// Determines the shape of nested lists of numbers.
class ShapeFinder {
 public:
  // Returns the shape of a value, or nullopt if it is neither a number nor nested lists of numbers,
  // or if lists at the same level differ in length.
  static std::optional<Lengths> ShapeOf(JsonView value) {
    ShapeFinder finder;
    return finder.Visit(value, 0) ? std::optional(std::move(finder.lengths_)) : std::nullopt;
  }

 private:
  bool Visit(JsonView value, size_t level) {
    if (!value.IsArray()) {
      rank_known_ = true;
      return level == lengths_.size() && value.IfDouble().has_value();
    }
    const bool first = level == lengths_.size();
    if (first && rank_known_) return false;
    if (first) lengths_.push_back(0);
    int64_t count = 0;
    const Status end = value.ForEachElement([&](JsonView element) {
      ++count;
      return Visit(element, level + 1) ? OkStatus() : InvalidArgument("not a number");
    });
    if (first) lengths_[level] = count;
    if (count == 0) rank_known_ = true;
    return end.ok() && lengths_[level] == count;
  }

  Lengths lengths_;
  bool rank_known_ = false;
};

// Calls `use` for each number in a value that has a shape.
void ForEachNumber(JsonView value, absl::FunctionRef<void(JsonView)> use) {
  if (!value.IsArray()) return use(value);
  (void)value.ForEachElement([&](JsonView element) {
    ForEachNumber(element, use);
    return OkStatus();
  });
}

std::string NumberText(JsonView number) {
  const std::optional<int64_t> integer = number.IfInt();
  return integer ? StrCat(*integer) : StrCat(number.IfDouble().value_or(0));
}

// Adds the numbers of a member with this shape to the field, and returns the first numbers as text.
std::string AddNumbers(JsonView member, const Lengths& shape, FieldSummary& field) {
  if (shape.size() == 1) field.values.Add(shape[0]);
  std::vector<std::string> first;
  int64_t count = 0;
  ForEachNumber(member, [&](JsonView number) {
    if (const std::optional<int64_t> integer = number.IfInt()) {
      field.integers.Add(*integer);
    } else {
      field.AddNumber(number.IfDouble().value_or(0));
    }
    if (++count <= kMostValues) first.push_back(NumberText(number));
  });
  return ListText(first, count);
}

// Returns the kind of a member: "number", "list of numbers", "numbers [2,3]" or, if it has no
// shape, its JSON type.
std::string KindOf(JsonView member, const std::optional<Lengths>& shape) {
  if (!shape) {
    const std::string_view type = member.TypeName();  // "a string"
    const size_t article = type.find(' ');
    return std::string(article == std::string_view::npos ? type : type.substr(article + 1));
  }
  if (shape->empty()) return "number";
  if (shape->size() == 1) return "list of numbers";
  return StrCat("numbers ", Shape(*shape).ToString());
}

Status DescribeObject(std::string_view line, JsonDocument& document, FileSummary& summary,
                      std::vector<std::string>* values) {
  ASSIGN_OR_RETURN(const JsonView root, ParseObject(line, document));
  return root.ForEachMember([&](std::string_view name, JsonView member) {
    const std::optional<Lengths> shape = ShapeFinder::ShapeOf(member);
    const std::string kind = KindOf(member, shape);
    FieldSummary unlisted;
    FieldSummary* const listed = summary.Field(name, kind);
    FieldSummary& field = listed == nullptr ? unlisted : *listed;
    ++field.examples;
    std::string text = kind;
    if (shape) {
      text = AddNumbers(member, *shape, field);
    } else if (kind == "string") {
      field.bytes.Add(static_cast<int64_t>(member.Text().size()));
      text = ValueText(member.Text());
    } else if (const std::optional<bool> truth = member.IfBool()) {
      text = *truth ? "true" : "false";
    }
    if (values != nullptr) values->push_back(NamedText(name, text));
    return OkStatus();
  });
}

}  // namespace

StatusOr<FileSummary> SummariseJsonLines(const std::string& path, const SummaryOptions& options,
                                         const StopSource& stop) {
  JsonDocument document;
  return SummariseRecords(
      path, "JSON lines", *JsonLinesFormat(), options, stop,
      [&](std::string_view record, FileSummary& summary, std::vector<std::string>* values) {
        return DescribeObject(record, document, summary, values);
      });
}

}  // namespace tfjob::data
