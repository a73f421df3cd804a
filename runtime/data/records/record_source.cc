#include "runtime/data/records/record_source.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/dataset.h"
#include "runtime/data/records/record_files.h"
#include "runtime/data/records/record_index.h"
#include "runtime/data/row_memory.h"
#include "runtime/data/row_pool.h"

namespace tfjob::data {
namespace {

// Adds advice to the message of a DataLoss error.
Status WithAdvice(const Status& error, const RecordOptions& options) {
  if (!absl::IsDataLoss(error)) return error;
  if (!options.can_skip_damaged) return DataLoss(Message(error), "; replace the file");
  return DataLoss(Message(error), options.skip_damaged
                                      ? "; the file has changed since it was opened"
                                      : "; replace the file, or set on_damaged: skip to leave out "
                                        "what is damaged");
}

// Returns different strings for different features.
std::string Print(const ExampleFeature& feature) {
  return StrCat(feature.name, ": ", Name(feature.dtype), " ", feature.shape.ToString(),
                feature.raw ? ", raw" : "", feature.variable ? ", variable" : "",
                feature.sequence ? ", sequence" : "",
                feature.fill ? StrCat(", missing: ", std::bit_cast<uint64_t>(*feature.fill)) : "",
                feature.image ? StrCat(", ", Print(*feature.image)) : "",
                feature.tokens ? StrCat(", ", feature.tokens->Print()) : "",
                feature.vocabulary ? StrCat(", terms ", feature.vocabulary->fingerprint()) : "",
                "\n");
}

// The values of the features for the examples of one batch.
class Staging {
 public:
  // There are at most `most` examples. `fields` and `options.fields` have the same order. Both must
  // outlive this object.
  Staging(const RecordOptions& options, const std::vector<Field>& fields, size_t most, size_t lanes)
      : options_(options), fields_(fields), rows_(most) {
    std::iota(rows_.begin(), rows_.end(), 0);
    // Uninitialised memory is safe, because a reader fills the values either of all examples or of
    // none.
    for (const ExampleFeature& feature : options.features)
      memory_.emplace_back(feature.dtype, feature.shape, static_cast<int64_t>(most));
    const std::vector<Tensor> tensors = TensorsFor(static_cast<int64_t>(most));
    for (size_t i = 0; i < lanes; ++i) lanes_.emplace_back(options.features, tensors);
  }

  size_t most() const { return rows_.size(); }
  // Returns the memory for the features of an example. The memory belongs to one lane at a time.
  ExampleRow& Row(size_t lane, size_t example) {
    lanes_[lane].Begin(static_cast<int64_t>(example));
    return lanes_[lane];
  }
  // From now on, lets all rows store a feature directly in a tensor of the batch. The dataset then
  // no longer contains the values of this feature.
  void Replace(size_t feature, const Tensor& tensor) {
    for (ExampleRow& lane : lanes_) lane.Replace(feature, tensor);
  }
  // Returns the first `count` examples, in the memory of the rows. `count` may differ from batch to
  // batch, because a joined source contributes a varying number of examples.
  Dataset& First(size_t count) {
    Dataset& dataset = datasets_[count];
    if (!dataset.arrays.empty()) return dataset;
    const std::vector<Tensor> tensors = TensorsFor(static_cast<int64_t>(count));
    for (size_t i = 0; i < fields_.size(); ++i) {
      const size_t number = *lanes_[0].Find(options_.fields[i].feature);
      dataset.arrays.push_back({fields_[i].name, fields_[i].file, tensors[number]});
    }
    return dataset;
  }
  // Returns the numbers 0, 1, … of `count` examples.
  std::span<const int64_t> rows(size_t count) const { return std::span(rows_).first(count); }

 private:
  std::vector<Tensor> TensorsFor(int64_t rows) const {
    std::vector<Tensor> tensors;
    for (const RowMemory& memory : memory_) tensors.push_back(memory.First(rows));
    return tensors;
  }

  const RecordOptions& options_;
  const std::vector<Field>& fields_;
  std::vector<int64_t> rows_;
  std::vector<RowMemory> memory_;       // one per feature
  std::vector<ExampleRow> lanes_;       // share the memory
  std::map<size_t, Dataset> datasets_;  // by the number of examples
};

std::optional<double> PaddingOf(const ExampleFeature& feature) {
  if (feature.tokens) return static_cast<double>(feature.tokens->padding);
  if (!feature.variable) return std::nullopt;
  return feature.raw ? 0 : feature.fill.value_or(0);
}

class RecordSource : public Source {
 public:
  RecordSource(std::unique_ptr<const RecordFormat> format, RecordOptions options, RecordFiles files,
               RecordIndex index, Damage damage)
      : format_(std::move(format)),
        options_(std::move(options)),
        files_(std::move(files)),
        index_(std::move(index)),
        damage_(std::move(damage)) {
    const std::string where = FilesText();
    for (const RecordOptions::Value& field : options_.fields) {
      const auto feature =
          std::ranges::find(options_.features, field.feature, &ExampleFeature::name);
      ENFORCE(feature != options_.features.end(), "the caller knows its features");
      fields_.push_back({field.name, StrCat(where, ": feature ", field.feature), feature->dtype,
                         feature->shape, PaddingOf(*feature)});
    }
  }

  int64_t size() const override { return index_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return false; }
  std::vector<int64_t> file_starts() const override { return index_.file_starts(); }
  int64_t rows_in_memory() const override { return size() <= options_.most_listed ? size() : 0; }
  std::string Describe() const override {
    uint64_t bytes = 0, unpacked = 0;
    for (const RecordFile& file : files_.files()) (file.unpacked ? unpacked : bytes) += file.size;
    std::string text = StrCat(FilesText(), "; ");
    if (bytes > 0) text += StrCat(bytes, " bytes, read when a batch needs them; ");
    if (unpacked > 0) text += StrCat(unpacked, " bytes unpacked into a temporary file; ");
    return text + index_.Describe();
  }
  std::string LeftOut() const override {
    if (damage_.places == 0) return {};
    return StrCat(damage_.places, damage_.places == 1 ? " damaged place is" : " damaged places are",
                  " left out of the data; the first: ", damage_.first);
  }
  // Covers the checksums of the records, and how the features are converted to values.
  uint64_t fingerprint() const override {
    Fnv1a hash;
    for (const ExampleFeature& feature : options_.features) hash.Add(Print(feature));
    for (const RecordOptions::Value& field : options_.fields)
      hash.Add(StrCat(field.name, " from ", field.feature, "\n"));
    hash.Add(options_.layout);
    return hash.AddWord(index_.hash()).hash();
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override;

  const RecordFormat& format() const { return *format_; }
  const RecordOptions& options() const { return options_; }
  const RecordFiles& files() const { return files_; }
  const RecordIndex& index() const { return index_; }

 private:
  // Returns text such as "a.tfrecord and 2 others".
  std::string FilesText() const {
    const size_t others = files_.files().size() - 1;
    const std::string& first = files_.files()[0].path;
    return others == 0 ? first : StrCat(first, " and ", others, others == 1 ? " other" : " others");
  }

  const std::unique_ptr<const RecordFormat> format_;
  const RecordOptions options_;
  const RecordFiles files_;
  const RecordIndex index_;
  const Damage damage_;
  std::vector<Field> fields_;
};

class RecordReader : public RowReader {
 public:
  RecordReader(const RecordSource& source, std::vector<Column> columns)
      : source_(source), columns_(std::move(columns)), pool_(source.options().threads) {
    // Limit the total number of open files in all lanes to kMostOpen, but allow at least one per
    // lane.
    const size_t most_open = RecordFileReader::kMostOpen / pool_.lanes();
    for (size_t i = 0; i < pool_.lanes(); ++i) {
      lanes_.push_back({RecordFileReader(source.files(), most_open),
                        source.format().MakeParser(source.options().features)});
    }
    for (const Column& column : columns_) direct_.push_back(DirectFeature(column));
  }

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Staging& staging = StagingFor(rows.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (direct_[i]) staging.Replace(*direct_[i], tensors[i].value);
    }
    const Status read = pool_.ForEach(rows.size(), [&](size_t lane, size_t i) {
      RETURN_IF_ERROR(ReadExample(lanes_[lane], rows[i], staging.Row(lane, i)));
      ScaleDirect(i, rows.size(), tensors);
      return OkStatus();
    });
    // Check for changes first, because a changed file explains why its records appear to be
    // damaged.
    for (Lane& lane : lanes_) RETURN_IF_ERROR(lane.files.CheckUnchanged());
    RETURN_IF_ERROR(read);
    Dataset& dataset = staging.First(rows.size());
    dataset.place = [this, rows](int64_t index) {
      return PlaceOf(lanes_[0], source_.index().At(rows[static_cast<size_t>(index)]));
    };
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (direct_[i]) continue;
      ASSIGN_OR_RETURN(const ColumnValues values, ReadColumn(dataset, columns_[i]));
      CopyRows(values, staging.rows(rows.size()), tensors[i].value);
    }
    return OkStatus();
  }

 private:
  struct Lane {
    RecordFileReader files;
    std::unique_ptr<RecordParser> parser;
  };

  // Returns the column's feature if its images can be read directly into the column's tensors,
  // because they need no conversion and no other column uses them. Otherwise, returns nullopt.
  std::optional<size_t> DirectFeature(const Column& column) const {
    const auto feature_of = [this](const Column& of) {
      const RecordOptions& options = source_.options();
      const auto field = std::ranges::find(options.fields, of.array, &RecordOptions::Value::name);
      return field == options.fields.end()
                 ? options.features.end()
                 : std::ranges::find(options.features, field->feature, &ExampleFeature::name);
    };
    const auto feature = feature_of(column);
    if (feature == source_.options().features.end() || !feature->image) return std::nullopt;
    const auto same = [&](const Column& other) { return feature_of(other) == feature; };
    if (!TakesFloats(column, feature->shape) || std::ranges::count_if(columns_, same) > 1)
      return std::nullopt;
    return static_cast<size_t>(feature - source_.options().features.begin());
  }

  // Scales the values of one example in the columns into which images are read directly.
  void ScaleDirect(size_t example, size_t rows, std::span<NamedTensor> tensors) const {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!direct_[i] || columns_[i].scale == 1) continue;
      const std::span<float> all = tensors[i].value.data<float>();
      const size_t width = all.size() / rows;
      for (float& value : all.subspan(example * width, width)) value *= columns_[i].scale;
    }
  }

  Staging& StagingFor(size_t rows) {
    if (staging_ == nullptr || staging_->most() < rows) {
      staging_ =
          std::make_unique<Staging>(source_.options(), source_.fields(), rows, lanes_.size());
    }
    return *staging_;
  }

  std::string PlaceOf(Lane& lane, const RecordPlace& place) const {
    return source_.format().Place(source_.files(), lane.files, place);
  }

  Status ReadExample(Lane& lane, int64_t number, ExampleRow& row) const {
    const RecordPlace place = source_.index().At(number);
    const StatusOr<std::string_view> record =
        source_.format().Read(source_.files(), lane.files, place);
    if (!record.ok()) return WithAdvice(record.status(), source_.options());
    const Status parsed = lane.parser->Parse(*record, row);
    if (parsed.ok()) return OkStatus();
    return WithAdvice(Annotate(parsed, PlaceOf(lane, place)), source_.options());
  }

  const RecordSource& source_;
  const std::vector<Column> columns_;
  RowPool pool_;
  std::vector<Lane> lanes_;
  std::vector<std::optional<size_t>> direct_;  // by column: see DirectFeature
  std::unique_ptr<Staging> staging_;
};

StatusOr<std::unique_ptr<RowReader>> RecordSource::Open(const std::vector<Column>& columns) const {
  return std::make_unique<RecordReader>(*this, columns);
}

// Returns memory for the features of one example.
std::vector<Tensor> MemoryForOne(const std::vector<ExampleFeature>& features) {
  std::vector<Tensor> tensors;
  for (const ExampleFeature& feature : features)
    tensors.push_back(RowMemory(feature.dtype, feature.shape, 1).First(1));
  return tensors;
}

// Decodes the images of records to find the damaged ones.
class ImageCheck {
 public:
  // The arguments must outlive this object.
  ImageCheck(const RecordFormat& format, const RecordOptions& options)
      : parser_(format.MakeParser(options.features)),
        row_(options.features, MemoryForOne(options.features)) {}

  Status Run(std::string_view record) {
    row_.Begin(0);
    return parser_->Parse(record, row_);
  }

 private:
  const std::unique_ptr<RecordParser> parser_;
  ExampleRow row_;
};

}  // namespace

StatusOr<std::shared_ptr<const Source>> OpenRecords(std::unique_ptr<const RecordFormat> format,
                                                    const RecordOptions& options) {
  const std::string folder = TemporaryFolder(options.cache_dir);
  Damage damage;
  ASSIGN_OR_RETURN(const std::vector<std::string> paths, FindFiles(options.files));
  StatusOr<RecordFiles> files =
      RecordFiles::Open(paths, folder, options.skip_damaged ? &damage : nullptr);
  if (!files.ok()) return WithAdvice(files.status(), options);
  std::optional<ImageCheck> check;
  IndexOptions indexing{.skip_damaged = options.skip_damaged,
                        .folder = folder,
                        .most_in_memory = options.most_indexed_in_memory};
  const auto has_image = [](const ExampleFeature& feature) { return feature.image.has_value(); };
  if (options.skip_damaged && std::ranges::any_of(options.features, has_image)) {
    check.emplace(*format, options);
    indexing.check = [&check](std::string_view record) { return check->Run(record); };
  }
  StatusOr<RecordIndex> index = RecordIndex::Build(*format, *files, indexing, damage);
  if (!index.ok()) return WithAdvice(index.status(), options);
  return std::make_shared<const RecordSource>(std::move(format), options, *std::move(files),
                                              *std::move(index), std::move(damage));
}

}  // namespace tfjob::data
