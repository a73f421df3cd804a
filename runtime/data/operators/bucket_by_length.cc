#include "runtime/data/operators/bucket_by_length.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/data/buckets.h"

namespace tfjob::data {
namespace {

constexpr int64_t kRowsPerPass = 256;

// Returns the number of positions in the fields.
StatusOr<int64_t> PlacesOf(const Source& source, const BucketByLengthOptions& options) {
  ENFORCE(!options.fields.empty(), "the caller names at least one field");
  int64_t places = 0;
  for (const std::string& name : options.fields) {
    const Field* field = source.Find(name);
    if (field == nullptr) return InvalidArgument("the examples have no field ", name);
    if (field->shape.rank() == 0) {
      return InvalidArgument("expected sequences in ", name,
                             ", but its values are single numbers (", field->file, ")");
    }
    if (places > 0 && field->shape.dim(0) != places) {
      return InvalidArgument("expected ", places, " places in ", name, ", as in ",
                             options.fields[0], ", got ", field->shape.dim(0));
    }
    places = field->shape.dim(0);
  }
  return places;
}

StatusOr<double> PaddingOf(const Field& field, const BucketByLengthOptions& options) {
  const double padding = options.padding ? *options.padding : field.padding.value_or(0);
  if (!std::isnan(padding)) return padding;
  return InvalidArgument("expected one value that pads all examples of ", field.name, " (",
                         field.file, "), but the joined datasets have different ones; use the ",
                         "same tokenizer and default_value in all of them, or set padding");
}

StatusOr<std::vector<int64_t>> LengthsOf(const BucketByLengthOptions& options, int64_t places) {
  int64_t before = 0;
  for (const int64_t boundary : options.boundaries) {
    if (boundary <= before || boundary >= places) {
      return InvalidArgument("expected ascending boundaries from 1 to ", places - 1,
                             ", one less than the length of the examples, got ", boundary);
    }
    before = boundary;
  }
  std::vector<int64_t> lengths = options.boundaries;
  lengths.push_back(places);
  return lengths;
}

// Returns the length of the example without the padding at its end.
int64_t LengthOf(std::span<const double> values, int64_t places, double padding) {
  const auto other =
      std::find_if(values.rbegin(), values.rend(), [&](double value) { return value != padding; });
  const auto used = static_cast<int64_t>(values.rend() - other);
  const auto width = static_cast<int64_t>(values.size()) / places;
  return (used + width - 1) / width;
}

// Determines the lengths of examples. Reads the fields as float64, which represents ids exactly up
// to 2^53.
class LengthReader {
 public:
  static StatusOr<LengthReader> Open(const Source& source, const BucketByLengthOptions& options,
                                     int64_t places) {
    LengthReader opened(places);
    for (const std::string& name : options.fields) {
      const Field& field = *source.Find(name);
      ASSIGN_OR_RETURN(opened.paddings_.emplace_back(), PaddingOf(field, options));
      opened.columns_.push_back(
          {.name = name, .array = name, .dtype = DType::kFloat64, .shape = field.shape});
    }
    ASSIGN_OR_RETURN(opened.reader_, source.Open(opened.columns_));
    return opened;
  }

  // Returns the lengths of the examples `rows`. The span stays valid until the next call.
  StatusOr<std::span<const int64_t>> Read(std::span<const int64_t> rows) {
    Resize(rows.size());
    RETURN_IF_ERROR(reader_->Read(rows, values_));
    std::ranges::fill(lengths_, 1);
    for (size_t f = 0; f < values_.size(); ++f) {
      const std::span<const double> all = std::as_const(values_[f].value).data<double>();
      const size_t width = all.size() / rows.size();
      for (size_t i = 0; i < rows.size(); ++i) {
        const int64_t length = LengthOf(all.subspan(i * width, width), places_, paddings_[f]);
        lengths_[i] = std::max(lengths_[i], length);
      }
    }
    return std::span<const int64_t>(lengths_);
  }

 private:
  explicit LengthReader(int64_t places) : places_(places) {}

  void Resize(size_t rows) {
    if (lengths_.size() == rows) return;
    lengths_.resize(rows);
    values_.clear();
    for (const Column& column : columns_) {
      std::vector<int64_t> dims = column.shape.dims();
      dims.insert(dims.begin(), static_cast<int64_t>(rows));
      values_.push_back({column.name, Tensor(column.dtype, Shape(std::move(dims)))});
    }
  }

  int64_t places_;
  std::vector<double> paddings_;  // one per field
  std::vector<Column> columns_;
  std::unique_ptr<RowReader> reader_;
  std::vector<NamedTensor> values_;
  std::vector<int64_t> lengths_;
};

class Bucketed : public Source {
 public:
  Bucketed(SourcePtr source, Buckets buckets)
      : source_(std::move(source)), buckets_(std::move(buckets)) {}

  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool in_memory() const override { return source_->in_memory(); }
  int64_t rows_in_memory() const override { return source_->rows_in_memory(); }
  bool random_access() const override { return source_->random_access(); }
  std::string Describe() const override { return source_->Describe(); }
  std::string LeftOut() const override { return source_->LeftOut(); }
  // The fingerprint need not cover the lengths, because they depend only on the examples.
  uint64_t fingerprint() const override { return source_->fingerprint(); }
  const Buckets* buckets() const override { return &buckets_; }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    return source_->Open(columns);
  }

 private:
  const SourcePtr source_;
  const Buckets buckets_;
};

}  // namespace

StatusOr<SourcePtr> BucketByLength(SourcePtr source, const BucketByLengthOptions& options) {
  ASSIGN_OR_RETURN(const int64_t places, PlacesOf(*source, options));
  ASSIGN_OR_RETURN(std::vector<int64_t> lengths, LengthsOf(options, places));
  if (source->size() > Buckets::kMostRows) {
    return InvalidArgument("expected at most ", Buckets::kMostRows, " examples, got ",
                           source->size());
  }
  if (!source->random_access()) {
    return InvalidArgument(source->fields()[0].file, ": the examples can ",
                           "only be read in their order; cache them first");
  }
  ASSIGN_OR_RETURN(LengthReader reader, LengthReader::Open(*source, options, places));
  Buckets buckets(std::move(lengths));
  std::vector<int64_t> rows;
  for (int64_t begin = 0; begin < source->size(); begin += kRowsPerPass) {
    rows.resize(static_cast<size_t>(std::min(kRowsPerPass, source->size() - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    ASSIGN_OR_RETURN(const std::span<const int64_t> measured, reader.Read(rows));
    for (size_t i = 0; i < rows.size(); ++i) buckets.Add(rows[i], measured[i]);
  }
  return std::make_shared<const Bucketed>(std::move(source), std::move(buckets));
}

}  // namespace tfjob::data
