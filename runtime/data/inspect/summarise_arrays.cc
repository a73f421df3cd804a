// Summarises files of arrays, which are read completely into memory.
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

// Calls `use` with the elements of the tensor, as a span of its type.
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

// Returns the values of one example as text.
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
  return StrCat(array.name, ": ", ListText(first, width));
}

// Adds what has been read of an array: damage, or why it cannot be read.
void AddProblem(const std::string& name, const Status& error, FileSummary& summary) {
  if (absl::IsDataLoss(error)) return summary.AddDamage(Message(error));
  if (FieldSummary* const field = summary.Field(name, "")) field->problem = Message(error);
}

// Adds the arrays whose first axis is that of the examples.
void AddArrays(const std::vector<NamedArray>& arrays, const SummaryOptions& options,
               FileSummary& summary) {
  for (const NamedArray& array : arrays) {
    AddField(array, summary);
    summary.examples = std::max(summary.examples, array.values.shape().dim(0));
  }
  for (int64_t row = 0; row < std::min(summary.examples, options.examples); ++row) {
    std::vector<std::string> values;
    for (const NamedArray& array : arrays) {
      if (row < array.values.shape().dim(0)) values.push_back(RowText(array, row));
    }
    summary.AddExample(StrCat("row ", row), std::move(values));
  }
}

// Adds an array, or the reason why it cannot be read, to `arrays` and `summary`.
void Take(const std::string& name, StatusOr<Tensor> read, std::vector<NamedArray>& arrays,
          FileSummary& summary) {
  if (!read.ok()) return AddProblem(name, read.status(), summary);
  if (read->shape().rank() > 0) {
    arrays.push_back({name, *std::move(read)});
  } else if (FieldSummary* const field = summary.Field(name, "")) {
    field->problem = StrCat(Name(read->dtype()), ", a single number");
  }
}

// Reads a file that contains one array.
StatusOr<FileSummary> OneArray(const std::string& path, const char* format,
                               StatusOr<Tensor> (*read)(const std::string&),
                               const SummaryOptions& options) {
  FileSummary summary(path, format, options.most_damage);
  StatusOr<Tensor> tensor = read(path);
  if (!tensor.ok() && !absl::IsDataLoss(tensor.status())) return tensor.status();
  std::vector<NamedArray> arrays;
  Take("array", std::move(tensor), arrays, summary);
  AddArrays(arrays, options, summary);
  return summary;
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
  FileSummary summary(path, "NumPy archive", options.most_damage);
  const StatusOr<io::NpzReader> archive = io::NpzReader::Open(path);
  if (!archive.ok() && !absl::IsDataLoss(archive.status())) return archive.status();
  if (!archive.ok()) {
    summary.AddDamage(Message(archive.status()));
    return summary;
  }
  std::vector<NamedArray> arrays;
  for (const std::string& name : archive->names()) {
    if (stop.requested()) return Cancelled("stopped while reading ", path);
    Take(name, archive->Read(name), arrays, summary);
  }
  AddArrays(arrays, options, summary);
  return summary;
}

}  // namespace tfjob::data
