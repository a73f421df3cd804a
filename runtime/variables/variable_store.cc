#include "runtime/variables/variable_store.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace tfjob::variables {
namespace {

int64_t Cols(const Shape& shape) {
  return shape.rank() == 0 ? 1 : shape.dim(-1);
}

int64_t Rows(const Shape& shape) {
  int64_t rows = 1;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) rows *= shape.dim(axis);
  return rows;
}

constexpr int64_t kMaxElements = int64_t{1} << 40;

bool Fits(const Shape& shape) {
  int64_t elements = 1;
  return std::ranges::all_of(shape.dims(), [&](int64_t dim) {
    return !__builtin_mul_overflow(elements, dim, &elements) && elements <= kMaxElements;
  });
}

}  // namespace

std::string_view Name(Kind kind) {
  switch (kind) {
    case Kind::kTrainable:
      return "trainable";
    case Kind::kMovingStatistic:
      return "moving statistic";
    case Kind::kSlot:
      return "slot";
    case Kind::kCounter:
      return "counter";
  }
  return "unknown";
}

Variable::Variable(std::string name, DType dtype, Shape shape, Kind kind, int64_t row_stride,
                   std::shared_ptr<device::DeviceRuntime> runtime, device::Memory memory)
    : name_(std::move(name)),
      dtype_(dtype),
      shape_(std::move(shape)),
      kind_(kind),
      rows_(Rows(shape_)),
      cols_(Cols(shape_)),
      row_stride_(row_stride),
      runtime_(std::move(runtime)),
      memory_(std::move(memory)) {
  ENFORCE(row_stride_ >= cols_, "a row stride of at least a row");
}

Variable::~Variable() {
  BeforeWrite();
}

Tensor Variable::Memory() {
  BeforeWrite();
  if (row_stride_ != cols_ || !runtime_->immediate())
    return Tensor(dtype_, shape_, Buffer::Contents::kUndefined);
  return Tensor(dtype_, shape_, std::make_shared<Buffer>(memory_, num_bytes()));
}

std::shared_ptr<ValueCopy> Variable::BeginCopy(Tensor to) {
  BeforeWrite();
  copy_ = std::make_shared<ValueCopy>(*this, std::move(to));
  if (!runtime_->immediate()) copy_->Finish();
  return copy_;
}

void Variable::BeforeWrite() {
  if (copy_ == nullptr) return;
  copy_->Finish();
  copy_.reset();
}

Status Variable::CheckRange(size_t offset, size_t size) const {
  if (offset <= num_bytes() && size <= num_bytes() - offset) return OkStatus();
  return InvalidArgument("variable ", name_, " ", Name(dtype_), shape_.ToString(), " has ",
                         num_bytes(), " bytes, got bytes ", offset, " to ", offset + size);
}

// Splits the bytes [offset, offset + size) of the dense value into pieces that are contiguous in
// memory. Calls move(done, at, count) for each piece, where `done` is the number of bytes before
// the piece, `at` is the piece's offset in memory, and `count` is its size in bytes. Returns the
// first error of a call.
template <typename Move>
Status Variable::ForEachPiece(size_t offset, size_t size, Move move) const {
  if (size == 0) return OkStatus();
  if (dense()) return move(size_t{0}, offset, size);
  const size_t row_bytes = static_cast<size_t>(cols_) * SizeOf(dtype_);
  const size_t stride_bytes = static_cast<size_t>(row_stride_) * SizeOf(dtype_);
  for (size_t done = 0; done < size;) {
    const size_t row = (offset + done) / row_bytes;
    const size_t within = (offset + done) % row_bytes;
    const size_t piece = std::min(size - done, row_bytes - within);
    RETURN_IF_ERROR(move(done, row * stride_bytes + within, piece));
    done += piece;
  }
  return OkStatus();
}

Status Variable::CopyOut(size_t offset, std::span<std::byte> part) const {
  RETURN_IF_ERROR(CheckRange(offset, part.size()));
  const auto* const from = static_cast<const std::byte*>(memory_.get());
  return ForEachPiece(offset, part.size(), [&](size_t into, size_t at, size_t size) {
    return runtime_->Read(part.data() + into, from + at, size);
  });
}

Status Variable::CopyIn(size_t offset, std::span<const std::byte> part) {
  RETURN_IF_ERROR(CheckRange(offset, part.size()));
  BeforeWrite();
  auto* const to = static_cast<std::byte*>(memory_.get());
  return ForEachPiece(offset, part.size(), [&](size_t from, size_t at, size_t size) {
    return runtime_->Write(to + at, part.data() + from, size);
  });
}

Status Variable::CheckSize(size_t size) const {
  if (size == num_bytes()) return OkStatus();
  return InvalidArgument("variable ", name_, " ", Name(dtype_), shape_.ToString(), " has ",
                         num_bytes(), " bytes, got ", size);
}

Status Variable::CopyOut(std::span<std::byte> dense) const {
  RETURN_IF_ERROR(CheckSize(dense.size()));
  return CopyOut(0, dense);
}

Status Variable::CopyIn(std::span<const std::byte> dense) {
  RETURN_IF_ERROR(CheckSize(dense.size()));
  RETURN_IF_ERROR(CopyIn(0, dense));
  CountWrite();
  return OkStatus();
}

Tensor Variable::ToTensor() const {
  Tensor value(dtype_, shape_);
  ENFORCE(CopyOut(value.bytes()).ok(),
          "a tensor of the variable's own shape fits, on a device "
          "that works");
  return value;
}

Status Variable::FromTensor(const Tensor& value) {
  if (value.dtype() != dtype_ || value.shape() != shape_) {
    return InvalidArgument("variable ", name_, " is ", Name(dtype_), shape_.ToString(), ", got ",
                           Name(value.dtype()), value.shape().ToString());
  }
  if (value.bytes().data() != data()) return CopyIn(value.bytes());
  CountWrite();  // the value is already in place (see Memory)
  return OkStatus();
}

int64_t DenseRowStride(DType, const Shape& shape) {
  return Cols(shape);
}

StatusOr<Variable*> VariableStore::Create(std::string_view name, DType dtype, Shape shape,
                                          Kind kind) {
  if (name.empty()) return InvalidArgument("a variable needs a name");
  if (std::ranges::any_of(shape.dims(), [](int64_t dim) { return dim < 0; })) {
    return InvalidArgument("variable ", name, ": every dimension must be at least 0, got ",
                           shape.ToString());
  }
  if (!Fits(shape)) {
    return InvalidArgument("variable ", name, ": expected at most 2^40 elements, got ",
                           shape.ToString());
  }
  if (Find(name) != nullptr)
    return AlreadyExists("variable ", name, " already exists; rename one of the two");
  const int64_t row_stride = row_stride_(dtype, shape);
  const size_t bytes = static_cast<size_t>(Rows(shape) * row_stride) * SizeOf(dtype);
  ASSIGN_OR_RETURN(device::Memory memory,
                   runtime_->Allocate(device::MemoryKind::kDevice, bytes, Buffer::Contents::kZero,
                                      StrCat("variable ", name)));
  variables_.push_back(std::make_unique<Variable>(std::string(name), dtype, std::move(shape), kind,
                                                  row_stride, runtime_, std::move(memory)));
  Variable* variable = variables_.back().get();
  by_name_.emplace(variable->name(), variable);
  return variable;
}

Variable* VariableStore::Find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

StatusOr<Variable*> VariableStore::Get(std::string_view name) const {
  if (Variable* variable = Find(name)) return variable;
  std::string known;
  for (size_t i = 0; i < std::min<size_t>(variables_.size(), 10); ++i) {
    known += (i > 0 ? ", " : "") + variables_[i]->name();
  }
  if (variables_.size() > 10) known += ", …";
  return NotFound("there is no variable ", name, "; known: ", known.empty() ? "none" : known);
}

size_t VariableStore::num_bytes() const {
  size_t bytes = 0;
  for (const auto& variable : variables_) bytes += variable->num_bytes();
  return bytes;
}

}  // namespace tfjob::variables
