#include "runtime/data/source.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "runtime/data/row_memory.h"

namespace tfjob::data {
namespace {

void Scatter(const Tensor& from, std::span<const int64_t> places, Tensor& to) {
  const size_t bytes = from.num_bytes() / places.size();
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(to.bytes().data() + static_cast<size_t>(places[i]) * bytes,
                from.bytes().data() + i * bytes, bytes);
  }
}

}  // namespace

// The buffer of ReadAt.
class RowReader::ScatterBuffer {
 public:
  // Returns tensors like those of a batch, except that they have `rows` examples.
  std::span<NamedTensor> Of(int64_t rows, std::span<const NamedTensor> tensors) {
    Reserve(std::max(rows, tensors[0].value.shape().dim(0)), tensors);
    std::vector<NamedTensor>& staged = staged_[rows];
    if (staged.empty()) {
      for (size_t i = 0; i < tensors.size(); ++i)
        staged.push_back({tensors[i].name, memory_[i].First(rows)});
    }
    return staged;
  }

 private:
  void Reserve(int64_t rows, std::span<const NamedTensor> tensors) {
    if (rows <= most_rows_) return;
    most_rows_ = rows;
    memory_.clear();
    staged_.clear();
    for (const NamedTensor& tensor : tensors) {
      const std::vector<int64_t>& dims = tensor.value.shape().dims();
      memory_.emplace_back(tensor.value.dtype(),
                           Shape(std::vector<int64_t>(dims.begin() + 1, dims.end())), rows);
    }
  }

  int64_t most_rows_ = 0;  // the number of rows for which there is memory
  std::vector<RowMemory> memory_;
  std::map<int64_t, std::vector<NamedTensor>> staged_;  // by the number of rows
};

RowReader::RowReader() = default;
RowReader::~RowReader() = default;

Status RowReader::ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                         std::span<NamedTensor> tensors) {
  if (rows.empty()) return OkStatus();
  if (scatter_buffer_ == nullptr) scatter_buffer_ = std::make_unique<ScatterBuffer>();
  const std::span<NamedTensor> staged =
      scatter_buffer_->Of(static_cast<int64_t>(rows.size()), tensors);
  RETURN_IF_ERROR(Read(rows, staged));
  for (size_t i = 0; i < tensors.size(); ++i) Scatter(staged[i].value, places, tensors[i].value);
  return OkStatus();
}

std::optional<uint64_t> Source::values_hash() const {
  const uint64_t hash = fingerprint();
  return hash != 0 ? std::optional<uint64_t>(hash) : std::nullopt;
}

const Field* Source::Find(std::string_view name) const {
  const auto found = std::ranges::find(fields(), name, &Field::name);
  return found == fields().end() ? nullptr : &*found;
}

}  // namespace tfjob::data
