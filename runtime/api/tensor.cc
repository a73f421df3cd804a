#include "runtime/api/tensor.h"

#include <algorithm>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/base/env.h"

namespace tfjob::api {
namespace {

// The internal types, in the order of the public enum.
constexpr tfjob::DType kInternalTypes[] = {tfjob::DType::kFloat32, tfjob::DType::kFloat64,
                                           tfjob::DType::kInt32,   tfjob::DType::kInt64,
                                           tfjob::DType::kUInt8,   tfjob::DType::kBool};

tfjob::DType Internal(DType dtype) {
  return kInternalTypes[static_cast<size_t>(dtype)];
}

// The maximum size of an array in bytes. No machine has so much memory.
constexpr int64_t kMostBytes = int64_t{1} << 46;

tfjob::StatusOr<Shape> CheckedShape(DType dtype, std::vector<int64_t> dims) {
  Shape shape(std::move(dims));
  const std::optional<int64_t> elements = shape.CheckedElements();
  const auto size = static_cast<int64_t>(SizeOf(Internal(dtype)));
  constexpr int64_t kSurelyFits = int64_t{1} << 30;
  if (elements && *elements <= kMostBytes / size &&
      (*elements * size <= kSurelyFits || *elements * size <= AvailableMemory()))
    return shape;
  return InvalidArgument("expected the shape of an array that memory can hold, got ",
                         shape.ToString());
}

template <typename T>
Result<Tensor> CopyOf(DType dtype, std::vector<int64_t> dims, std::span<const T> elements) {
  const StatusOr<Shape> shape = CheckedShape(dtype, std::move(dims));
  if (!shape.ok()) return ToPublic(shape.status());
  if (static_cast<size_t>(shape->num_elements()) != elements.size()) {
    return ToPublic(InvalidArgument("an array of shape ", shape->ToString(), " has ",
                                    shape->num_elements(), " elements, but ", elements.size(),
                                    " are given"));
  }
  tfjob::Tensor made(Internal(dtype), *shape, Buffer::Contents::kUndefined);
  std::ranges::copy(elements, made.data<T>().begin());
  return Access::MakeTensor(std::move(made));
}

// Returns the elements. Ends the process if they are not of type `wanted`.
template <typename T>
std::span<T> ElementsOf(Tensor& tensor, DType wanted) {
  if (!tensor.present()) return {};
  if (tensor.dtype() != wanted) {
    Exit(ToPublic(InvalidArgument("an array of ", Name(tensor.dtype()), " has no elements of type ",
                                  Name(wanted))));
  }
  // A copy of a tfjob::Tensor shares the elements.
  return tfjob::Tensor(Access::Data(tensor)).data<T>();
}

}  // namespace

const char* Name(DType dtype) {
  return tfjob::Name(Internal(dtype)).data();
}

Tensor Access::MakeTensor(tfjob::Tensor tensor) {
  return Tensor(std::make_shared<Tensor::Data>(Tensor::Data{std::move(tensor)}));
}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape) {
  const StatusOr<Shape> checked = CheckedShape(dtype, std::move(shape));
  if (!checked.ok()) Exit(ToPublic(checked.status()));
  data_ = std::make_shared<Data>(Data{tfjob::Tensor(Internal(dtype), *checked)});
}

Result<Tensor> Tensor::Of(std::vector<int64_t> shape, std::span<const float> elements) {
  return CopyOf(DType::kFloat32, std::move(shape), elements);
}
Result<Tensor> Tensor::Of(std::vector<int64_t> shape, std::span<const double> elements) {
  return CopyOf(DType::kFloat64, std::move(shape), elements);
}
Result<Tensor> Tensor::Of(std::vector<int64_t> shape, std::span<const int32_t> elements) {
  return CopyOf(DType::kInt32, std::move(shape), elements);
}
Result<Tensor> Tensor::Of(std::vector<int64_t> shape, std::span<const int64_t> elements) {
  return CopyOf(DType::kInt64, std::move(shape), elements);
}
Result<Tensor> Tensor::Of(std::vector<int64_t> shape, std::span<const uint8_t> elements) {
  return CopyOf(DType::kUInt8, std::move(shape), elements);
}
Result<Tensor> Tensor::Of(std::vector<int64_t> shape, std::span<const bool> elements) {
  return CopyOf(DType::kBool, std::move(shape), elements);
}

DType Tensor::dtype() const {
  if (!present()) return DType::kFloat32;
  const auto found = std::ranges::find(kInternalTypes, data_->tensor.dtype());
  return static_cast<DType>(found - std::begin(kInternalTypes));
}

const std::vector<int64_t>& Tensor::shape() const& {
  static const std::vector<int64_t>* const kNone = new std::vector<int64_t>{0};
  return present() ? data_->tensor.shape().dims() : *kNone;
}

int64_t Tensor::size() const {
  return present() ? data_->tensor.num_elements() : 0;
}

std::span<float> Tensor::float32() & {
  return ElementsOf<float>(*this, DType::kFloat32);
}
std::span<const float> Tensor::float32() const& {
  return const_cast<Tensor*>(this)->float32();
}
std::span<double> Tensor::float64() & {
  return ElementsOf<double>(*this, DType::kFloat64);
}
std::span<const double> Tensor::float64() const& {
  return const_cast<Tensor*>(this)->float64();
}
std::span<int32_t> Tensor::int32() & {
  return ElementsOf<int32_t>(*this, DType::kInt32);
}
std::span<const int32_t> Tensor::int32() const& {
  return const_cast<Tensor*>(this)->int32();
}
std::span<int64_t> Tensor::int64() & {
  return ElementsOf<int64_t>(*this, DType::kInt64);
}
std::span<const int64_t> Tensor::int64() const& {
  return const_cast<Tensor*>(this)->int64();
}
std::span<uint8_t> Tensor::uint8() & {
  return ElementsOf<uint8_t>(*this, DType::kUInt8);
}
std::span<const uint8_t> Tensor::uint8() const& {
  return const_cast<Tensor*>(this)->uint8();
}
std::span<bool> Tensor::boolean() & {
  return ElementsOf<bool>(*this, DType::kBool);
}
std::span<const bool> Tensor::boolean() const& {
  return const_cast<Tensor*>(this)->boolean();
}

std::span<const std::byte> Tensor::bytes() const& {
  if (!present()) return {};
  return std::as_const(data_->tensor).bytes();
}

Tensor Tensor::Clone() const {
  return present() ? Access::MakeTensor(data_->tensor.Clone()) : Tensor();
}

Result<Tensor> Tensor::Reshaped(std::vector<int64_t> shape) const {
  const StatusOr<Shape> checked = CheckedShape(dtype(), std::move(shape));
  if (!checked.ok()) return ToPublic(checked.status());
  if (!present() || checked->num_elements() != size()) {
    return ToPublic(InvalidArgument("an array of ", size(), " elements cannot have the shape ",
                                    checked->ToString()));
  }
  return Access::MakeTensor(data_->tensor.Reshaped(*checked));
}

}  // namespace tfjob::api
