#include "runtime/data/source.h"

#include <algorithm>
#include <cstring>

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

// Returns tensors like those of a batch, except that they have `rows` examples.
std::span<NamedTensor> RowReader::Staged(int64_t rows, std::span<const NamedTensor> tensors) {
  const int64_t batch = tensors[0].value.shape().dim(0);
  if (std::max(rows, batch) > most_rows_) {
    most_rows_ = std::max(rows, batch);
    memory_.clear();
    staged_.clear();
    for (const NamedTensor& tensor : tensors) {
      const std::vector<int64_t>& dims = tensor.value.shape().dims();
      memory_.emplace_back(tensor.value.dtype(),
                           Shape(std::vector<int64_t>(dims.begin() + 1, dims.end())), most_rows_);
    }
  }
  std::vector<NamedTensor>& staged = staged_[rows];
  if (staged.empty()) {
    for (size_t i = 0; i < tensors.size(); ++i)
      staged.push_back({tensors[i].name, memory_[i].First(rows)});
  }
  return staged;
}

Status RowReader::ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                         std::span<NamedTensor> tensors) {
  if (rows.empty()) return OkStatus();
  const std::span<NamedTensor> staged = Staged(static_cast<int64_t>(rows.size()), tensors);
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
