#include <algorithm>
#include <utility>

#include "runtime/data/inspect/summarise_records.h"
#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/tfrecord.h"

namespace tfjob::data {
namespace {

constexpr int64_t kMostSteps = 3;  // the maximum number of steps that are shown

// Describes the features of one example after another. Keeps its buffers from example to example.
class ExampleDescriber {
 public:
  Status Describe(std::string_view example, FileSummary& summary,
                  std::vector<std::string>* values) {
    const auto on_feature = [&](const Feature& feature) -> Status {
      FieldSummary& field = FieldOf(summary, feature.name, KindName(feature.kind));
      ++field.examples;
      ASSIGN_OR_RETURN(const std::string text, Add(feature, field, values != nullptr));
      if (values != nullptr) values->push_back(NamedText(feature.name, text));
      return OkStatus();
    };
    const auto on_steps = [&](const FeatureSteps& steps) {
      return AddSteps(steps, summary, values);
    };
    return VisitExample(example, {on_feature, on_steps});
  }

 private:
  // Returns the name of the kind without an article, such as "int64_list".
  static std::string_view KindName(ListKind kind) {
    const std::string_view name = Name(kind);
    return name.substr(name.find(' ') + 1);
  }

  // Returns the field of this name and kind. If the summary has too many fields, returns a field
  // that is not listed.
  FieldSummary& FieldOf(FileSummary& summary, std::string_view name, std::string_view kind) {
    FieldSummary* const field = summary.Field(name, kind);
    return field == nullptr ? unlisted_ : *field;
  }

  Status AddSteps(const FeatureSteps& steps, FileSummary& summary,
                  std::vector<std::string>* values) {
    int64_t count = 0, without_list = 0;
    std::string kind, text;
    const auto visit = [&](const Feature& feature) -> Status {
      ++count;
      const bool show = values != nullptr && count <= kMostSteps;
      if (!feature.has_list) {
        ++without_list;
        if (show) text += StrCat(count > 1 ? "; " : "", "no list");
        return OkStatus();
      }
      if (kind.empty()) kind = StrCat("steps of ", KindName(feature.kind));
      FieldSummary& field = FieldOf(summary, steps.name, kind);
      ASSIGN_OR_RETURN(const std::string step, Add(feature, field, show));
      if (show) text += StrCat(count > 1 ? "; " : "", step);
      return OkStatus();
    };
    RETURN_IF_ERROR(VisitSteps(steps, visit));
    if (kind.empty()) kind = "feature list";  // of an unknown kind
    FieldSummary& field = FieldOf(summary, steps.name, kind);
    ++field.examples;
    if (without_list > 0) field.values.Add(0);
    field.steps.Add(count);
    if (values == nullptr) return OkStatus();
    if (const int64_t more = count - kMostSteps; more > 0)
      text += StrCat(" and ", more, more == 1 ? " more step" : " more steps");
    values->push_back(NamedText(steps.name, count == 0 ? "no steps" : text));
    return OkStatus();
  }

  // Adds the values of a feature to the field. If `show` is true, returns the first values as text.
  StatusOr<std::string> Add(const Feature& feature, FieldSummary& field, bool show) {
    switch (feature.kind) {
      case ListKind::kBytes:
        return AddStrings(feature.list, field, show);
      case ListKind::kFloat:
        return AddNumbers(ReadFloatList, feature.list, floats_, field, show);
      case ListKind::kInt64:
        return AddNumbers(ReadInt64List, feature.list, integers_, field, show);
    }
    return std::string();
  }

  template <typename T>
  static StatusOr<std::string> AddNumbers(StatusOr<size_t> (*read)(std::string_view, std::span<T>),
                                          std::string_view list, std::vector<T>& buffer,
                                          FieldSummary& field, bool show) {
    ASSIGN_OR_RETURN(const size_t count, read(list, {}));
    if (buffer.size() < count) buffer.resize(count);
    const std::span<T> values = std::span(buffer).first(count);
    RETURN_IF_ERROR(read(list, values).status());
    field.values.Add(static_cast<int64_t>(count));
    for (const T value : values) {
      if constexpr (std::is_integral_v<T>) {
        field.integers.Add(value);
      } else {
        field.AddNumber(value);
      }
    }
    if (!show) return std::string();
    std::vector<std::string> first;
    for (size_t i = 0; i < std::min<size_t>(count, kMostValues); ++i)
      first.push_back(StrCat(values[i]));
    return ListText(first, static_cast<int64_t>(count));
  }

  StatusOr<std::string> AddStrings(std::string_view list, FieldSummary& field, bool show) {
    ASSIGN_OR_RETURN(const size_t count, ReadBytesList(list, {}));
    if (strings_.size() < count) strings_.resize(count);
    RETURN_IF_ERROR(ReadBytesList(list, strings_).status());
    field.values.Add(static_cast<int64_t>(count));
    std::vector<std::string> first;
    for (size_t i = 0; i < count; ++i) {
      field.bytes.Add(static_cast<int64_t>(strings_[i].size()));
      if (show && first.size() < kMostValues) first.push_back(ValueText(strings_[i]));
    }
    return show ? ListText(first, static_cast<int64_t>(count)) : std::string();
  }

  FieldSummary unlisted_;
  std::vector<float> floats_;
  std::vector<int64_t> integers_;
  std::vector<std::string_view> strings_;
};

}  // namespace

StatusOr<FileSummary> SummariseTfRecords(const std::string& path, const SummaryOptions& options,
                                         const StopSource& stop) {
  ExampleDescriber describer;
  return SummariseRecords(
      path, "TFRecord", *TfRecordFormat(), options, stop,
      [&](std::string_view record, FileSummary& summary, std::vector<std::string>* values) {
        return describer.Describe(record, summary, values);
      });
}

}  // namespace tfjob::data
