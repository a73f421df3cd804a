// Summarises files of arrays. Keeps only one array in memory at a time.
#include <algorithm>
#include <utility>

#include "runtime/data/dataset.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/io/npy.h"
#include "runtime/io/npz.h"

namespace tfjob::data {
namespace {

struct NamedArray {
  std::string name;
  Tensor values;
};

// Calls `use` with a span of the tensor's elements.
template <typename Use>
void WithElements(const Tensor& tensor, const Use& use) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return use(tensor.data<float>());
    case DType::kFloat64:
      return use(tensor.data<double>());
    case DType::kInt32:
      return use(tensor.data<int32_t>());
    case DType::kUInt8:
      return use(tensor.data<uint8_t>());
    case DType::kInt64:
      return use(tensor.data<int64_t>());
    case DType::kBool:
      return use(tensor.data<bool>());
    case DType::kBFloat16:  // the readers of arrays convert these to float32
    case DType::kFloat16:
      return;
  }
}

void AddField(const NamedArray& array, FileSummary& summary) {
  FieldSummary* const field = summary.Field(array.name, Name(array.values.dtype()));
  if (field == nullptr) return;
  const Array of_dataset{.name = array.name, .file = {}, .values = array.values};
  field->examples = array.values.shape().dim(0);
  field->shape = of_dataset.example_shape();
  WithElements(array.values, [&](auto elements) {
    for (const auto element : elements) {
      if constexpr (std::is_floating_point_v<std::decay_t<decltype(element)>>) {
        field->AddNumber(element);
      } else {
        field->integers.Add(static_cast<int64_t>(element));
      }
    }
  });
}

// Describes the values of one example.
std::string RowText(const NamedArray& array, int64_t row) {
  const Shape& shape = array.values.shape();
  const int64_t width = shape.dim(0) == 0 ? 0 : shape.num_elements() / shape.dim(0);
  std::vector<std::string> first;
  WithElements(array.values, [&](auto elements) {
    for (const auto element : elements.subspan(static_cast<size_t>(row * width),
                                               static_cast<size_t>(std::min(width, kMostValues)))) {
      if constexpr (std::is_floating_point_v<std::decay_t<decltype(element)>>) {
        first.push_back(StrCat(element));
      } else {
        first.push_back(StrCat(static_cast<int64_t>(element)));
      }
    }
  });
  return NamedText(array.name, ListText(first, width));
}

// Adds an error from reading an array to the summary: as damage if the error is DataLoss, and
// otherwise as the reason why the array cannot be read.
void AddProblem(const std::string& name, const Status& error, FileSummary& summary) {
  if (absl::IsDataLoss(error)) return summary.AddDamage(Message(error));
  if (FieldSummary* const field = summary.Field(name, "")) field->problem = Message(error);
}

// Collects the arrays of a file, but keeps only the summary and the text of the first rows.
class ArraySummary {
 public:
  ArraySummary(const std::string& path, const char* format, const SummaryOptions& options)
      : options_(options), summary_(path, format, options.most_damage) {}

  FileSummary& summary() { return summary_; }

  // Adds an array, or the reason why it cannot be read.
  void Add(const std::string& name, StatusOr<Tensor> read) {
    if (!read.ok()) return AddProblem(name, read.status(), summary_);
    if (read->shape().rank() > 0) return AddArray({name, *std::move(read)});
    if (FieldSummary* const field = summary_.Field(name, ""))
      field->problem = StrCat(Name(read->dtype()), ", a single number");
  }

  FileSummary End() && {
    for (size_t row = 0; row < rows_.size(); ++row)
      summary_.AddExample(StrCat("row ", row), std::move(rows_[row]));
    return std::move(summary_);
  }

 private:
  void AddArray(const NamedArray& array) {
    AddField(array, summary_);
    const int64_t size = array.values.shape().dim(0);
    summary_.examples = std::max(summary_.examples, size);
    const auto shown = static_cast<size_t>(std::min(size, options_.examples));
    if (rows_.size() < shown) rows_.resize(shown);
    for (size_t row = 0; row < shown; ++row)
      rows_[row].push_back(RowText(array, static_cast<int64_t>(row)));
  }

  const SummaryOptions& options_;
  FileSummary summary_;
  std::vector<std::vector<std::string>> rows_;  // the values of the first examples
};

// Reads a file that contains one array.
StatusOr<FileSummary> OneArray(const std::string& path, const char* format,
                               StatusOr<Tensor> (*read)(const std::string&),
                               const SummaryOptions& options) {
  StatusOr<Tensor> tensor = read(path);
  if (!tensor.ok() && !absl::IsDataLoss(tensor.status())) return tensor.status();
  ArraySummary arrays(path, format, options);
  arrays.Add("array", std::move(tensor));
  return std::move(arrays).End();
}

}  // namespace

StatusOr<FileSummary> SummariseNpy(const std::string& path, const SummaryOptions& options,
                                   const StopSource&) {
  return OneArray(path, "NumPy array", io::ReadNpy, options);
}

StatusOr<FileSummary> SummariseIdx(const std::string& path, const SummaryOptions& options,
                                   const StopSource&) {
  return OneArray(path, "IDX", ReadIdx, options);
}

StatusOr<FileSummary> SummariseNpz(const std::string& path, const SummaryOptions& options,
                                   const StopSource& stop) {
  ArraySummary arrays(path, "NumPy archive", options);
  const StatusOr<io::NpzReader> archive = io::NpzReader::Open(path);
  if (!archive.ok() && !absl::IsDataLoss(archive.status())) return archive.status();
  if (!archive.ok()) {
    arrays.summary().AddDamage(Message(archive.status()));
    return std::move(arrays).End();
  }
  for (const std::string& name : archive->names()) {
    if (stop.requested()) return Cancelled("stopped while reading ", path);
    arrays.Add(name, archive->Read(name));
  }
  return std::move(arrays).End();
}

}  // namespace tfjob::data
