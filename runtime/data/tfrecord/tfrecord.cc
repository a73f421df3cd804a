#include "runtime/data/tfrecord/tfrecord.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/record_files.h"
#include "runtime/data/tfrecord/record_index.h"

namespace tfjob::data {
namespace {

ListKind KindOf(const ExampleFeature& feature) {
  if (feature.raw) return ListKind::kBytes;
  return feature.dtype == DType::kFloat32 ? ListKind::kFloat : ListKind::kInt64;
}

// If the error is DataLoss, adds advice to its message.
Status WithAdvice(const Status& error, const TfRecordOptions& options) {
  if (!absl::IsDataLoss(error)) return error;
  return DataLoss(Message(error), options.skip_damaged
                                      ? "; the file has changed since it was opened"
                                      : "; replace the file, or set on_damaged: skip to leave out "
                                        "what is damaged");
}

template <typename T>
void FillWith(double value, std::span<std::byte> to) {
  auto* elements = reinterpret_cast<T*>(to.data());
  std::fill_n(elements, to.size() / sizeof(T), static_cast<T>(value));
}

// Sets all elements to the value that replaces missing ones. Features with `raw` have no such
// value.
void FillMissing(const ExampleFeature& feature, std::span<std::byte> to) {
  const double value = feature.fill.value_or(0);
  feature.dtype == DType::kFloat32 ? FillWith<float>(value, to) : FillWith<int64_t>(value, to);
}

// Describes what the list of a feature must contain.
std::string Describe(const ExampleFeature& feature) {
  if (feature.raw) return "one string in a bytes_list";
  return StrCat(feature.variable ? "at most " : "", feature.shape.num_elements(),
                feature.variable || feature.shape.num_elements() != 1 ? " values" : " value",
                " in ", Name(KindOf(feature)));
}

// Returns a text that differs for any two features that differ.
std::string Print(const ExampleFeature& feature) {
  return StrCat(feature.name, ": ", Describe(feature), " as ", tfjob::Name(feature.dtype), " ",
                feature.shape.ToString(),
                feature.fill ? StrCat(", missing: ", *feature.fill) : std::string(), "\n");
}

// Stores the values of a list in `to`, which is exactly as large as the feature's shape requires.
Status StoreRaw(const ExampleFeature& expected, std::string_view list, std::span<std::byte> to) {
  std::string_view bytes;
  ASSIGN_OR_RETURN(const size_t count, ReadBytesList(list, {&bytes, 1}));
  if (count != 1) return InvalidArgument("expected one string in a bytes_list, got ", count);
  if (bytes.size() != to.size()) {
    return InvalidArgument("expected a string of ", to.size(), " bytes, for ",
                           tfjob::Name(expected.dtype), " of shape ", expected.shape.ToString(),
                           ", got ", bytes.size(), " bytes");
  }
  if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  return OkStatus();
}

Status StoreList(const ExampleFeature& expected, const Feature& found, std::span<std::byte> to) {
  if (found.kind != KindOf(expected)) {
    return InvalidArgument("expected ", Describe(expected), ", got ", Name(found.kind));
  }
  if (expected.raw) return StoreRaw(expected, found.list, to);
  const auto elements = static_cast<size_t>(expected.shape.num_elements());
  const StatusOr<size_t> count =
      found.kind == ListKind::kFloat
          ? ReadFloatList(found.list, {reinterpret_cast<float*>(to.data()), elements})
          : ReadInt64List(found.list, {reinterpret_cast<int64_t*>(to.data()), elements});
  RETURN_IF_ERROR(count.status());
  if (*count > elements || (*count < elements && !expected.variable))
    return InvalidArgument("expected ", Describe(expected), ", got ", *count);
  if (*count < elements) FillMissing(expected, to.subspan(*count * SizeOf(expected.dtype)));
  return OkStatus();
}

// The values of the features for the examples of one batch.
class Staging {
 public:
  // `fields` and `values` are those of the source, in the same order. `features` must outlive this
  // object.
  Staging(const std::vector<ExampleFeature>& features, const std::vector<Field>& fields,
          const std::vector<TfRecordOptions::Value>& values, int64_t rows)
      : features_(features), rows_(static_cast<size_t>(rows)), seen_(features.size()) {
    std::iota(rows_.begin(), rows_.end(), 0);
    for (size_t i = 0; i < features.size(); ++i) {
      std::vector<int64_t> dims = features[i].shape.dims();
      dims.insert(dims.begin(), rows);
      tensors_.emplace_back(features[i].dtype, Shape(std::move(dims)));
      numbers_.emplace(features[i].name, i);
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      const Tensor& tensor = tensors_[numbers_.find(values[i].feature)->second];
      dataset_.arrays.push_back({fields[i].name, fields[i].file, tensor});
    }
  }

  // Reads the features of an example into a row.
  Status Store(std::string_view example, size_t row) {
    std::fill(seen_.begin(), seen_.end(), false);
    RETURN_IF_ERROR(VisitFeatures(example, [&](const Feature& feature) -> Status {
      const auto found = numbers_.find(feature.name);
      if (found == numbers_.end()) return OkStatus();
      if (seen_[found->second]) return InvalidArgument("the example has it twice");
      seen_[found->second] = true;
      return StoreList(features_[found->second], feature, Row(found->second, row));
    }));
    for (size_t i = 0; i < features_.size(); ++i) {
      if (!seen_[i]) RETURN_IF_ERROR(StoreMissing(i, row));
    }
    return OkStatus();
  }

  // The dataset shares the memory of the rows.
  Dataset& dataset() { return dataset_; }
  std::span<const int64_t> rows() const { return rows_; }  // 0, 1, …

 private:
  Status StoreMissing(size_t number, size_t row) {
    const ExampleFeature& feature = features_[number];
    if (!feature.variable && !feature.fill) {
      return InvalidArgument("feature ", feature.name, ": expected ", Describe(feature),
                             ", but the example does not have this feature");
    }
    FillMissing(feature, Row(number, row));
    return OkStatus();
  }

  std::span<std::byte> Row(size_t number, size_t row) {
    const size_t bytes = tensors_[number].num_bytes() / rows_.size();
    return tensors_[number].bytes().subspan(row * bytes, bytes);
  }

  const std::vector<ExampleFeature>& features_;
  std::vector<int64_t> rows_;
  std::vector<bool> seen_;                              // by feature: the current example has it
  std::vector<Tensor> tensors_;                         // one per feature: [rows, …]
  std::map<std::string, size_t, std::less<>> numbers_;  // numbers of the features, by name
  Dataset dataset_;
};

class TfRecordSource : public Source {
 public:
  TfRecordSource(TfRecordOptions options, RecordFiles files, RecordIndex index, Damage damage)
      : options_(std::move(options)),
        files_(std::move(files)),
        index_(std::move(index)),
        damage_(std::move(damage)) {
    const size_t others = files_.files().size() - 1;
    const std::string where = StrCat(
        files_.files()[0].path,
        others == 0 ? std::string() : StrCat(" and ", others, others == 1 ? " other" : " others"));
    for (const TfRecordOptions::Value& field : options_.fields) {
      const auto feature =
          std::ranges::find(options_.features, field.feature, &ExampleFeature::name);
      ENFORCE(feature != options_.features.end(), "the caller knows its features");
      fields_.push_back(
          {field.name, StrCat(where, ": feature ", field.feature), feature->dtype, feature->shape});
    }
  }

  int64_t size() const override { return index_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return false; }
  std::string LeftOut() const override {
    if (damage_.places == 0) return {};
    return StrCat(damage_.places, damage_.places == 1 ? " damaged place is" : " damaged places are",
                  " left out of the data; the first: ", damage_.first);
  }
  // Covers what opening has read: where the records are, and how their features become values.
  uint64_t fingerprint() const override {
    Fnv1a hash;
    for (const ExampleFeature& feature : options_.features) hash.Add(Print(feature));
    return hash.AddWord(index_.hash()).hash();
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override;

  const TfRecordOptions& options() const { return options_; }
  const RecordFiles& files() const { return files_; }
  const RecordIndex& index() const { return index_; }

 private:
  const TfRecordOptions options_;
  const RecordFiles files_;
  const RecordIndex index_;
  const Damage damage_;
  std::vector<Field> fields_;
};

class TfRecordReader : public RowReader {
 public:
  TfRecordReader(const TfRecordSource& source, std::vector<Column> columns)
      : source_(source), columns_(std::move(columns)), files_(source.files()) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Staging& staging = StagingFor(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) RETURN_IF_ERROR(ReadExample(rows[i], staging, i));
    staging.dataset().place = [this, rows](int64_t index) {
      return PlaceOf(source_.index().At(rows[static_cast<size_t>(index)]));
    };
    for (size_t i = 0; i < columns_.size(); ++i) {
      ASSIGN_OR_RETURN(const ColumnValues values, ReadColumn(staging.dataset(), columns_[i]));
      CopyRows(values, staging.rows(), tensors[i].value);
    }
    return OkStatus();
  }

 private:
  Staging& StagingFor(size_t rows) {
    for (const std::unique_ptr<Staging>& staging : staging_) {
      if (staging != nullptr && staging->rows().size() == rows) return *staging;
    }
    // An epoch has batches of at most two sizes. This Staging replaces the older of the two.
    std::swap(staging_[0], staging_[1]);
    staging_[1] = std::make_unique<Staging>(source_.options().features, source_.fields(),
                                            source_.options().fields, static_cast<int64_t>(rows));
    return *staging_[1];
  }

  std::string PlaceOf(const RecordPlace& place) const {
    return source_.files().files()[place.file].Place(place.offset);
  }

  Status ReadExample(int64_t number, Staging& staging, size_t row) {
    const RecordPlace place = source_.index().At(number);
    const StatusOr<std::string_view> payload = ReadRecord(source_.files(), files_, place);
    if (!payload.ok()) return WithAdvice(payload.status(), source_.options());
    const Status stored = staging.Store(*payload, row);
    if (stored.ok()) return OkStatus();
    if (CheckExample(*payload).ok()) return Annotate(stored, PlaceOf(place));
    return WithAdvice(DataLoss(PlaceOf(place), ": it is not a tf.train.Example: ", Message(stored)),
                      source_.options());
  }

  const TfRecordSource& source_;
  const std::vector<Column> columns_;
  RecordFileReader files_;
  std::array<std::unique_ptr<Staging>, 2> staging_;
};

StatusOr<std::unique_ptr<RowReader>> TfRecordSource::Open(
    const std::vector<Column>& columns) const {
  return std::make_unique<TfRecordReader>(*this, columns);
}

}  // namespace

StatusOr<std::shared_ptr<const Source>> OpenTfRecords(const TfRecordOptions& options) {
  const std::string folder = TemporaryFolder(options.cache_dir);
  Damage damage;
  StatusOr<RecordFiles> files =
      RecordFiles::Open(options.files, folder, options.skip_damaged ? &damage : nullptr);
  if (!files.ok()) return WithAdvice(files.status(), options);
  StatusOr<RecordIndex> index =
      RecordIndex::Build(*files,
                         {.skip_damaged = options.skip_damaged,
                          .folder = folder,
                          .most_in_memory = options.most_indexed_in_memory},
                         damage);
  if (!index.ok()) return WithAdvice(index.status(), options);
  return std::make_shared<const TfRecordSource>(options, *std::move(files), *std::move(index),
                                                std::move(damage));
}

}  // namespace tfjob::data
