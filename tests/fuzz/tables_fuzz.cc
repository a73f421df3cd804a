// Checks the readers of CSV and IDX files with arbitrary bytes: nothing crashes, every error names
// the file and, in a CSV file, the line, and no more values are read than the file contains. The
// first byte of an input selects how the remaining bytes are read: as a CSV file with a header (c)
// or without one (n), or as an IDX file (i). Each file may be gzipped.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/data/csv/csv_numbers.h"
#include "runtime/data/dataset.h"
#include "tests/fuzz/records_property.h"

namespace tfjob::fuzz {
namespace {

constexpr int64_t kMostUnpacked = 1100;  // gzip packs at most 1032 bytes into one

// The beginnings of errors that concern a whole CSV file.
constexpr std::string_view kOfTheFile[] = {": expected at least two columns",
                                           ": the file has zero rows", ": the gzip data ",
                                           ": damaged gzip data"};

// Reads all rows of the file from disk. Returns their number.
StatusOr<int64_t> RowsOnDisk(const std::string& path, bool header) {
  ASSIGN_OR_RETURN(const auto source,
                   data::OpenCsv({.file = path, .header = header}, {.most_in_memory = 0}));
  std::vector<data::Column> columns;
  std::vector<data::NamedTensor> tensors;
  for (const data::Field& field : source->fields()) {
    columns.push_back({.name = field.name, .array = field.name, .shape = field.shape});
    std::vector<int64_t> dims = field.shape.dims();
    dims.insert(dims.begin(), 1);
    tensors.push_back({field.name, Tensor(DType::kFloat32, Shape(std::move(dims)))});
  }
  ASSIGN_OR_RETURN(const auto reader, source->Open(columns));
  for (int64_t row = 0; row < source->size(); ++row)
    RETURN_IF_ERROR(reader->Read(std::span(&row, 1), tensors));
  return source->size();
}

void CheckCsv(std::string_view bytes, bool header) {
  const MemoryFile file(bytes);
  const StatusOr<int64_t> rows = RowsOnDisk(file.path(), header);
  ENFORCE(rows.ok() || Message(rows.status()).starts_with(file.path()), "the error names the file");
  const StatusOr<data::Dataset> dataset = data::LoadCsv({.file = file.path(), .header = header});
  if (!dataset.ok()) {
    std::string_view message = Message(dataset.status());
    ENFORCE(message.starts_with(file.path()), "the error names the file");
    message.remove_prefix(file.path().size());
    bool named = message.starts_with(": line ");
    for (const std::string_view beginning : kOfTheFile) named |= message.starts_with(beginning);
    ENFORCE(named, "the error names the line");
    return;
  }
  const Tensor &features = dataset->arrays[0].values, &labels = dataset->arrays[1].values;
  const auto size = static_cast<int64_t>(bytes.size());
  ENFORCE(!rows.ok() || *rows == labels.num_elements(), "as many rows as on disk");
  ENFORCE(labels.num_elements() >= 1, "at least one row");
  ENFORCE(features.shape().dim(0) == labels.num_elements(), "a label per row");
  ENFORCE(features.num_elements() <= size * kMostUnpacked, "no more values than bytes");
  for (const float value : features.data<float>()) ENFORCE(!std::isnan(value), "no NaN");
  for (const double value : labels.data<double>()) ENFORCE(std::isfinite(value), "a finite label");
}

void CheckIdx(std::string_view bytes) {
  const MemoryFile file(bytes);
  const StatusOr<Tensor> tensor = data::ReadIdx(file.path());
  if (!tensor.ok()) {
    ENFORCE(Message(tensor.status()).starts_with(file.path()), "the error names the file");
    return;
  }
  const auto header = static_cast<size_t>(4 + 4 * tensor->shape().rank());
  const bool packed = bytes.starts_with("\x1f\x8b");
  ENFORCE(packed || bytes.size() == header + tensor->num_bytes(), "the bytes of the file");
  ENFORCE(packed || std::string_view(reinterpret_cast<const char*>(tensor->bytes().data()),
                                     tensor->num_bytes()) == bytes.substr(header),
          "the values of the file");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'c' || data[0] == 'n') tfjob::fuzz::CheckCsv(rest, data[0] == 'c');
  if (data[0] == 'i') tfjob::fuzz::CheckIdx(rest);
  return 0;
}
