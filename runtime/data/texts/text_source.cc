#include "runtime/data/texts/text_source.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/json.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/dataset.h"
#include "runtime/data/folders/class_files.h"
#include "runtime/data/row_pool.h"

namespace tfjob::data {
namespace {

// Reads a file into `buffer`, and returns its text.
StatusOr<std::string_view> ReadTextFile(const ClassFiles& files, int64_t file, bool skip_damaged,
                                        std::string& buffer) {
  const std::string path = files.Path(file);
  ASSIGN_OR_RETURN(const std::string_view content, ReadClassFile(path, files.Bytes(file), buffer));
  if (IsUtf8(content)) return content;
  return DataLoss(path, ": expected text in UTF-8, got other bytes",
                  skip_damaged ? "; the file has changed since it was opened"
                               : "; convert or remove the file, or set on_damaged: skip to leave "
                                 "out what is damaged");
}

struct DamagedTexts {
  int64_t count = 0;
  std::string first;  // the path of the first damaged file
};

// Leaves out the files that are not UTF-8.
StatusOr<DamagedTexts> LeaveOutDamagedTexts(const TextFolderOptions& options, ClassFiles& files) {
  RowPool pool(options.threads);
  std::vector<std::string> buffers(pool.lanes());
  std::vector<char> damaged(static_cast<size_t>(files.size()), 0);
  RETURN_IF_ERROR(pool.ForEach(damaged.size(), [&](size_t lane, size_t row) -> Status {
    const Status read =
        ReadTextFile(files, static_cast<int64_t>(row), /*skip_damaged=*/true, buffers[lane])
            .status();
    damaged[row] = absl::IsDataLoss(read) ? 1 : 0;
    return damaged[row] != 0 ? OkStatus() : read;
  }));
  DamagedTexts found{.count = std::ranges::count(damaged, 1)};
  if (found.count == 0) return found;
  found.first = files.Path(std::ranges::find(damaged, 1) - damaged.begin());
  files.Filter([&](int64_t file) { return damaged[static_cast<size_t>(file)] == 0; });
  if (files.size() > 0) return found;
  return InvalidArgument(files.folder(), ": none of the ", found.count,
                         " files is text in UTF-8; the first: ", found.first);
}

class TextSource : public Source {
 public:
  TextSource(TextFolderOptions options, ClassFiles files, DamagedTexts damaged)
      : options_(std::move(options)), files_(std::move(files)), damaged_(std::move(damaged)) {
    fields_ = {{.name = kFeaturesArray,
                .file = files_.folder(),
                .dtype = DType::kInt64,
                .shape = {options_.length},
                .padding = static_cast<double>(options_.sequence.padding)},
               {.name = kLabelsArray, .file = files_.folder(), .dtype = DType::kInt64}};
  }

  int64_t size() const override { return files_.size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return false; }
  std::vector<int64_t> file_starts() const override {
    std::vector<int64_t> starts(static_cast<size_t>(size()));
    std::iota(starts.begin(), starts.end(), 0);
    return starts;
  }
  std::string Describe() const override {
    return StrCat(files_.folder(), ": texts of ", files_.classes().size(),
                  files_.classes().size() == 1 ? " class, " : " classes, ", files_.TotalBytes(),
                  " bytes, read when a batch needs them by ", options_.threads,
                  options_.threads == 1 ? " thread" : " threads", "; list of ",
                  files_.MemoryBytes(), " bytes in memory");
  }
  std::string LeftOut() const override {
    if (damaged_.count == 0) return {};
    return StrCat(
        damaged_.count, damaged_.count == 1 ? " file is" : " files are",
        " left out of the data, because they are not text in UTF-8; the first: ", damaged_.first);
  }
  uint64_t fingerprint() const override {
    return Fnv1a()
        .Add(options_.sequence.Print())
        .AddWord(static_cast<uint64_t>(options_.length))
        .AddWord(files_.Hash())
        .hash();
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override;

  const TextFolderOptions& options() const { return options_; }
  const ClassFiles& files() const { return files_; }

 private:
  const TextFolderOptions options_;
  const ClassFiles files_;
  const DamagedTexts damaged_;
  std::vector<Field> fields_;
};

class TextRowReader : public RowReader {
 public:
  TextRowReader(const TextSource& source, std::vector<Column> columns)
      : source_(source), columns_(std::move(columns)), pool_(source.options().threads) {
    for (size_t i = 0; i < pool_.lanes(); ++i)
      lanes_.push_back({std::make_unique<text::SequenceEncoder>(source.options().sequence)});
    dataset_.arrays = {{.name = kFeaturesArray, .file = source.files().folder()},
                       {.name = kLabelsArray, .file = source.files().folder()}};
  }

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Stage(rows.size());
    dataset_.place = [this, rows](int64_t index) {
      return source_.files().Path(rows[static_cast<size_t>(index)]);
    };
    const std::span<int64_t> tokens = dataset_.arrays[0].values.data<int64_t>();
    const std::span<int64_t> labels = dataset_.arrays[1].values.data<int64_t>();
    const auto length = static_cast<size_t>(source_.options().length);
    RETURN_IF_ERROR(pool_.ForEach(rows.size(), [&](size_t lane, size_t i) {
      labels[i] = source_.files().ClassOf(rows[i]);
      return ReadTokens(lanes_[lane], rows[i], tokens.subspan(i * length, length));
    }));
    for (size_t i = 0; i < columns_.size(); ++i) {
      ASSIGN_OR_RETURN(const ColumnValues values, ReadColumn(dataset_, columns_[i]));
      CopyRows(values, numbers_, tensors[i].value);
    }
    return OkStatus();
  }

 private:
  struct TextLane {
    std::unique_ptr<text::SequenceEncoder> encoder;
    std::string bytes = {};
  };

  // Allocates memory for the values of a batch, unless the previous batch had the same size.
  void Stage(size_t rows) {
    if (numbers_.size() == rows) return;
    const auto count = static_cast<int64_t>(rows);
    dataset_.arrays[0].values = Tensor(DType::kInt64, {count, source_.options().length});
    dataset_.arrays[1].values = Tensor(DType::kInt64, {count});
    numbers_.resize(rows);
    for (size_t i = 0; i < rows; ++i) numbers_[i] = static_cast<int64_t>(i);
  }

  Status ReadTokens(TextLane& lane, int64_t file, std::span<int64_t> ids) const {
    ASSIGN_OR_RETURN(
        const std::string_view content,
        ReadTextFile(source_.files(), file, source_.options().skip_damaged, lane.bytes));
    const Status encoded = lane.encoder->Encode(content, ids).status();
    return encoded.ok() ? encoded : Annotate(encoded, source_.files().Path(file));
  }

  const TextSource& source_;
  const std::vector<Column> columns_;
  RowPool pool_;
  std::vector<TextLane> lanes_;
  Dataset dataset_;               // the values of a batch
  std::vector<int64_t> numbers_;  // 0, 1, …
};

StatusOr<std::unique_ptr<RowReader>> TextSource::Open(const std::vector<Column>& columns) const {
  return std::make_unique<TextRowReader>(*this, columns);
}

}  // namespace

StatusOr<std::shared_ptr<const Source>> OpenTexts(const TextFolderOptions& options) {
  ENFORCE(options.length > 0, "an example has at least one token");
  ASSIGN_OR_RETURN(ClassFiles files, ClassFiles::List({.path = options.folder,
                                                       .classes = options.classes,
                                                       .content = "texts",
                                                       .most_bytes = kMostTextBytes}));
  DamagedTexts damaged;
  if (options.skip_damaged) {
    ASSIGN_OR_RETURN(damaged, LeaveOutDamagedTexts(options, files));
  }
  return std::make_shared<const TextSource>(options, std::move(files), std::move(damaged));
}

}  // namespace tfjob::data
