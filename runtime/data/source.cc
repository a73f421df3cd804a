#include "runtime/data/source.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tfjob::data {
namespace {

// Gives `staged` tensors like those of a batch, except that they have `rows` examples.
void Resize(std::span<const NamedTensor> tensors, int64_t rows, std::vector<NamedTensor>& staged) {
  staged.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<int64_t> dims = tensors[i].value.shape().dims();
    dims[0] = rows;
    staged[i].name = tensors[i].name;
    staged[i].value = Tensor(tensors[i].value.dtype(), Shape(std::move(dims)));
  }
}

void Scatter(const Tensor& from, std::span<const int64_t> places, Tensor& to) {
  const size_t bytes = from.num_bytes() / places.size();
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(to.bytes().data() + static_cast<size_t>(places[i]) * bytes,
                from.bytes().data() + i * bytes, bytes);
  }
}

}  // namespace

Status RowReader::ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                         std::span<NamedTensor> tensors) {
  if (rows.empty()) return OkStatus();
  const auto count = static_cast<int64_t>(rows.size());
  if (staged_.empty() || staged_[0].value.shape().dim(0) != count) Resize(tensors, count, staged_);
  RETURN_IF_ERROR(Read(rows, staged_));
  for (size_t i = 0; i < tensors.size(); ++i) Scatter(staged_[i].value, places, tensors[i].value);
  return OkStatus();
}

const Field* Source::Find(std::string_view name) const {
  const auto found = std::ranges::find(fields(), name, &Field::name);
  return found == fields().end() ? nullptr : &*found;
}

}  // namespace tfjob::data
