#include "runtime/data/images/image_source.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "runtime/base/fnv1a.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/dataset.h"
#include "runtime/data/row_pool.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {
namespace {

// Adds the path to an error and, if the file is damaged, advice.
Status ErrorOf(const Status& error, const std::string& path, const ImageFolderOptions& options) {
  if (!absl::IsDataLoss(error)) return Annotate(error, path);
  return DataLoss(path, ": ", Message(error),
                  options.skip_damaged ? "; the file has changed since it was opened"
                                       : "; replace or remove the file, or set on_damaged: skip to "
                                         "leave out what is damaged");
}

struct DamagedFiles {
  int64_t count = 0;
  std::string first;  // the error message for the first damaged file
};

// Decodes all files, and leaves out the damaged ones.
StatusOr<DamagedFiles> LeaveOutDamaged(const ImageFolderOptions& options, ClassFiles& files) {
  RowPool pool(options.threads);
  std::vector<ImageDecoder> decoders;
  for (size_t i = 0; i < pool.lanes(); ++i)
    decoders.emplace_back(DecodeOptions{.channels = options.image.channels});
  std::vector<std::string> buffers(pool.lanes());
  std::vector<char> damaged(static_cast<size_t>(files.size()), 0);
  RETURN_IF_ERROR(pool.ForEach(damaged.size(), [&](size_t lane, size_t row) -> Status {
    const auto file = static_cast<int64_t>(row);
    const std::string path = files.Path(file);
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     ReadClassFile(path, files.Bytes(file), buffers[lane]));
    const Status decoded = decoders[lane].Decode(bytes).status();
    damaged[row] = absl::IsDataLoss(decoded) ? 1 : 0;
    return damaged[row] != 0 ? OkStatus() : Annotate(decoded, path);
  }));
  DamagedFiles found{.count = std::ranges::count(damaged, 1)};
  if (found.count == 0) return found;
  const auto first = std::ranges::find(damaged, 1) - damaged.begin();
  ASSIGN_OR_RETURN(const std::string_view bytes,
                   ReadClassFile(files.Path(first), files.Bytes(first), buffers[0]));
  found.first = Message(Annotate(decoders[0].Decode(bytes).status(), files.Path(first)));
  files.Filter([&](int64_t file) { return damaged[static_cast<size_t>(file)] == 0; });
  if (files.size() > 0) return found;
  return InvalidArgument(files.folder(), ": none of the ", found.count,
                         " files is an intact image; the first: ", found.first);
}

class ImageSource : public Source {
 public:
  ImageSource(ImageFolderOptions options, ClassFiles files, DamagedFiles damaged)
      : options_(std::move(options)), files_(std::move(files)), damaged_(std::move(damaged)) {
    const ResizeOptions& size = options_.image.resize;
    fields_ = {{.name = kFeaturesArray,
                .file = files_.folder(),
                .dtype = DType::kFloat32,
                .shape = {size.height, size.width, options_.image.channels}},
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
    const size_t classes = files_.classes().size();
    return StrCat(files_.folder(), "; ", classes, classes == 1 ? " class" : " classes", "; ",
                  files_.TotalBytes(), " bytes, read and decoded when a batch needs them by ",
                  options_.threads, options_.threads == 1 ? " thread" : " threads", "; list of ",
                  files_.MemoryBytes(), " bytes in memory");
  }
  std::string LeftOut() const override {
    if (damaged_.count == 0) return {};
    return StrCat(damaged_.count, damaged_.count == 1 ? " damaged file is" : " damaged files are",
                  " left out of the data; the first: ", damaged_.first);
  }
  uint64_t fingerprint() const override {
    return Fnv1a().Add(Print(options_.image)).AddWord(files_.Hash()).hash();
  }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override;

  const ImageFolderOptions& options() const { return options_; }
  const ClassFiles& files() const { return files_; }

 private:
  const ImageFolderOptions options_;
  const ClassFiles files_;
  const DamagedFiles damaged_;
  std::vector<Field> fields_;
};

class ImageRowReader : public RowReader {
 public:
  ImageRowReader(const ImageSource& source, std::vector<Column> columns)
      : source_(source), columns_(std::move(columns)), pool_(source.options().threads) {
    for (size_t i = 0; i < pool_.lanes(); ++i)
      lanes_.push_back({ImageReader(source.options().image)});
    const auto uses_pixels = [](const Column& column) { return column.array == kFeaturesArray; };
    const auto first = std::ranges::find_if(columns_, uses_pixels);
    needs_pixels_ = first != columns_.end();
    if (std::ranges::count_if(columns_, uses_pixels) == 1 && TakesFloats(*first, pixels().shape))
      direct_ = static_cast<size_t>(first - columns_.begin());
  }

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Dataset dataset;
    dataset.place = [this, rows](int64_t index) {
      return PathOf(rows, static_cast<size_t>(index));
    };
    if (direct_) {
      RETURN_IF_ERROR(ReadImages(rows, columns_[*direct_].scale, tensors[*direct_].value));
    } else if (needs_pixels_) {
      RETURN_IF_ERROR(ReadImages(rows, 1, StagedFor(rows.size())));
      dataset.arrays.push_back(ArrayOf(kFeaturesArray, staged_));
    }
    dataset.arrays.push_back(ArrayOf(kLabelsArray, LabelsOf(rows)));
    numbers_.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) numbers_[i] = static_cast<int64_t>(i);
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (direct_ == i) continue;
      ASSIGN_OR_RETURN(const ColumnValues values, ReadColumn(dataset, columns_[i]));
      CopyRows(values, numbers_, tensors[i].value);
    }
    return OkStatus();
  }

 private:
  struct Lane {
    ImageReader images;
    std::string bytes = {};
  };

  const Field& pixels() const { return source_.fields()[0]; }
  std::string PathOf(std::span<const int64_t> rows, size_t i) const {
    return source_.files().Path(rows[i]);
  }
  Array ArrayOf(const char* name, Tensor values) const {
    return {.name = name, .file = source_.files().folder(), .values = std::move(values)};
  }

  // Returns the memory for `rows` images that have to be converted.
  Tensor& StagedFor(size_t rows) {
    std::vector<int64_t> dims = pixels().shape.dims();
    dims.insert(dims.begin(), static_cast<int64_t>(rows));
    Shape shape(std::move(dims));
    if (staged_.shape() != shape) staged_ = Tensor(DType::kFloat32, std::move(shape));
    return staged_;
  }

  Tensor LabelsOf(std::span<const int64_t> rows) const {
    Tensor labels(DType::kInt64, {static_cast<int64_t>(rows.size())});
    for (size_t i = 0; i < rows.size(); ++i)
      labels.data<int64_t>()[i] = source_.files().ClassOf(rows[i]);
    return labels;
  }

  // Reads the images `rows` into the tensor, [rows, height, width, channels].
  Status ReadImages(std::span<const int64_t> rows, float scale, Tensor& tensor) {
    const std::span<float> all = tensor.data<float>();
    const size_t values = all.size() / rows.size();
    return pool_.ForEach(rows.size(), [&](size_t lane, size_t i) -> Status {
      const std::span<float> to = all.subspan(i * values, values);
      RETURN_IF_ERROR(ReadImage(lanes_[lane], rows[i], to));
      if (scale != 1) {
        for (float& value : to) value *= scale;
      }
      return OkStatus();
    });
  }

  Status ReadImage(Lane& lane, int64_t file, std::span<float> to) const {
    const std::string path = source_.files().Path(file);
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     ReadClassFile(path, source_.files().Bytes(file), lane.bytes));
    const Status read = lane.images.Read(bytes, to);
    return read.ok() ? read : ErrorOf(read, path, source_.options());
  }

  const ImageSource& source_;
  const std::vector<Column> columns_;
  RowPool pool_;
  std::vector<Lane> lanes_;
  bool needs_pixels_ = false;
  std::optional<size_t> direct_;  // the column into which images are read directly, if any
  Tensor staged_;
  std::vector<int64_t> numbers_;  // 0, 1, …
};

StatusOr<std::unique_ptr<RowReader>> ImageSource::Open(const std::vector<Column>& columns) const {
  return std::make_unique<ImageRowReader>(*this, columns);
}

}  // namespace

StatusOr<std::shared_ptr<const Source>> OpenImages(const ImageFolderOptions& options) {
  ASSIGN_OR_RETURN(
      ClassFiles files,
      ClassFiles::List({.path = options.folder, .classes = options.classes, .content = "images"}));
  DamagedFiles damaged;
  if (options.skip_damaged) {
    ASSIGN_OR_RETURN(damaged, LeaveOutDamaged(options, files));
  }
  return std::make_shared<const ImageSource>(options, std::move(files), std::move(damaged));
}

}  // namespace tfjob::data
