#include "runtime/data/csv/csv_columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/base/did_you_mean.h"
#include "runtime/data/csv_line.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::data {
namespace {

StatusOr<float> ParseFloat(std::string_view text) {
  const std::optional<double> number = ParseCsvNumber(text);
  const float rounded = number ? static_cast<float>(*number) : INFINITY;
  if (std::isfinite(rounded)) return rounded;
  return InvalidArgument("expected a finite number that fits into float32, got ",
                         text::Quote(text));
}

StatusOr<int64_t> ParseInteger(std::string_view text) {
  int64_t integer = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, integer);
  if (parsed.ec == std::errc() && parsed.ptr == end) return integer;
  // Accept ".0" after integers, which some programs write. A double of 2^53 or more may be a
  // rounded integer.
  const std::optional<double> number = ParseCsvNumber(text);
  if (number && std::floor(*number) == *number && std::fabs(*number) < 0x1p53)
    return static_cast<int64_t>(*number);
  return InvalidArgument("expected an integer of 64 bits, got ", text::Quote(text));
}

}  // namespace

CsvColumns::CsvColumns(const CsvFeature& of) : feature_(of.feature), names_(of.columns) {
  if (HasIds(feature_)) strings_ = std::make_unique<StringReader>(feature_);
}

size_t CsvColumns::bytes() const {
  return static_cast<size_t>(feature_.shape.num_elements()) * SizeOf(feature_.dtype);
}

Status CsvColumns::Find(const Fields& header) {
  const std::vector<std::string> known(header.begin(), header.end());
  columns_.clear();
  for (const std::string& name : names_) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end())
      return InvalidArgument("no column \"", name, "\"", DidYouMean(name, known));
    if (std::find(found + 1, known.end(), name) != known.end())
      return InvalidArgument("expected one column \"", name, "\", got several");
    columns_.push_back(static_cast<size_t>(found - known.begin()));
  }
  return OkStatus();
}

Status CsvColumns::Store(const Fields& record, std::span<std::byte> value) {
  const size_t size = SizeOf(feature_.dtype);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Status stored =
        StoreField(record[columns_[i]], feature_.tokens ? value : value.subspan(i * size, size));
    if (!stored.ok()) return Annotate(stored, StrCat("column ", names_[i]));
  }
  return OkStatus();
}

Status CsvColumns::StoreField(std::string_view field, std::span<std::byte> to) {
  const bool empty = field.empty() && !feature_.tokens;  // strings to tokenize may be empty
  if (empty && feature_.fill) {
    FillMissing(feature_, to);
  } else if (empty) {
    return InvalidArgument("expected a value, got an empty field; set default_value, or fill ",
                           "in the value");
  } else if (strings_ != nullptr) {
    strings_->Begin(to);
    return strings_->Add(field);
  } else if (feature_.dtype == DType::kFloat32) {
    ASSIGN_OR_RETURN(*reinterpret_cast<float*>(to.data()), ParseFloat(field));
  } else {
    ASSIGN_OR_RETURN(*reinterpret_cast<int64_t*>(to.data()), ParseInteger(field));
  }
  return OkStatus();
}

}  // namespace tfjob::data
