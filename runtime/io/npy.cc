#include "runtime/io/npy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/npy_header.h"
#include "runtime/io/random_access_file.h"
#include "runtime/tensor/half.h"

namespace tfjob::io {
namespace {

using ReadBytesNext = absl::FunctionRef<Status(std::span<std::byte>)>;

constexpr size_t kMostHeader = 1 << 20;
constexpr size_t kItemsAtOnce = 16 << 10;

// An array that needs more memory than this is refused if it is compressed to less than a hundredth
// of its size. Such data is almost constant, which is typical of files that are made to exhaust a
// reader's memory.
constexpr uint64_t kFreeBytes = 256 << 20;
constexpr uint64_t kMostExpansion = 100;

// Reads elements of type From in pieces, and converts each to To. Returns false at the first
// element that `convert` does not accept.
template <typename From, typename To, typename Convert>
StatusOr<bool> ReadConverted(bool swap, ReadBytesNext read, std::span<To> to, Convert convert) {
  std::vector<From> piece(std::min(to.size(), kItemsAtOnce));
  while (!to.empty()) {
    const std::span<From> items = std::span(piece).first(std::min(to.size(), piece.size()));
    RETURN_IF_ERROR(read(std::as_writable_bytes(items)));
    for (size_t i = 0; i < items.size(); ++i) {
      if (swap) {
        auto* bytes = reinterpret_cast<std::byte*>(&items[i]);
        std::reverse(bytes, bytes + sizeof(From));
      }
      if (!convert(items[i], to[i])) return false;
    }
    to = to.subspan(items.size());
  }
  return true;
}

template <typename From, typename To>
StatusOr<bool> ReadWidened(bool swap, ReadBytesNext read, Tensor& tensor) {
  return ReadConverted<From>(swap, read, tensor.data<To>(), [](From from, To& to) {
    to = static_cast<To>(from);
    return true;
  });
}

DType TypeOfArray(const NpyLayout& layout) {
  switch (layout.kind) {
    case 'b':
      return DType::kBool;
    case 'f':
      return layout.item == 8 ? DType::kFloat64 : DType::kFloat32;
    case 'u':
      return layout.item == 1 ? DType::kUInt8 : layout.item == 2 ? DType::kInt32 : DType::kInt64;
    default:
      return layout.item == 8 ? DType::kInt64 : DType::kInt32;
  }
}

// Reads the elements in the order of the file. Returns false if a value does not fit into the
// tensor's type.
StatusOr<bool> ReadItems(const NpyLayout& layout, ReadBytesNext read, Tensor& tensor) {
  const bool swap = layout.swap;
  switch (layout.kind) {
    case 'b':
      return ReadConverted<uint8_t>(swap, read, tensor.data<bool>(), [](uint8_t from, bool& to) {
        to = from != 0;
        return from <= 1;
      });
    case 'f':
      if (layout.item == 2) {
        return ReadConverted<uint16_t>(swap, read, tensor.data<float>(),
                                       [](uint16_t from, float& to) {
                                         to = static_cast<float>(Float16::FromBits(from));
                                         return true;
                                       });
      }
      if (swap && layout.item == 4) return ReadWidened<float, float>(swap, read, tensor);
      if (swap) return ReadWidened<double, double>(swap, read, tensor);
      break;
    case 'u':
      if (layout.item == 2) return ReadWidened<uint16_t, int32_t>(swap, read, tensor);
      if (layout.item == 4) return ReadWidened<uint32_t, int64_t>(swap, read, tensor);
      if (layout.item == 8) {
        return ReadConverted<uint64_t>(swap, read, tensor.data<int64_t>(),
                                       [](uint64_t from, int64_t& to) {
                                         to = static_cast<int64_t>(from);
                                         return to >= 0;
                                       });
      }
      break;
    default:
      if (layout.item == 1) return ReadWidened<int8_t, int32_t>(swap, read, tensor);
      if (layout.item == 2) return ReadWidened<int16_t, int32_t>(swap, read, tensor);
      if (swap && layout.item == 4) return ReadWidened<int32_t, int32_t>(swap, read, tensor);
      if (swap) return ReadWidened<int64_t, int64_t>(swap, read, tensor);
      break;
  }
  RETURN_IF_ERROR(read(tensor.bytes()));
  return true;
}

// Returns a tensor with the same elements in C order.
Tensor FromFortranOrder(const Tensor& stored) {
  Tensor tensor(stored.dtype(), stored.shape(), Buffer::Contents::kUndefined);
  const size_t item = SizeOf(stored.dtype());
  const std::vector<int64_t>& dims = stored.shape().dims();
  std::vector<int64_t> strides, index(dims.size(), 0);
  int64_t stride = 1;
  for (int64_t dim : dims) {
    strides.push_back(stride);
    stride *= dim;
  }
  int64_t from = 0;
  for (int64_t to = 0; to < stored.num_elements(); ++to) {
    std::memcpy(tensor.bytes().data() + static_cast<size_t>(to) * item,
                stored.bytes().data() + static_cast<size_t>(from) * item, item);
    for (size_t axis = dims.size(); axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < dims[axis]) break;
      from -= strides[axis] * dims[axis];
      index[axis] = 0;
    }
  }
  return tensor;
}

Status NotNpy(std::string_view what) {
  return InvalidArgument(what, ": not a NumPy array: expected the magic \\x93NUMPY and a version ",
                         "from 1 to 3");
}

// Reads the magic, the version and the header. Sets `size` to their total size.
StatusOr<NpyLayout> ReadLayout(std::string_view what, uint64_t most, ReadBytesNext read,
                               uint64_t& size) {
  std::array<std::byte, 8> magic;
  if (most < magic.size() + 2) return NotNpy(what);
  RETURN_IF_ERROR(read(magic));
  const auto version = static_cast<int>(magic[6]);
  if (std::memcmp(magic.data(), kNpyMagic.data(), kNpyMagic.size()) != 0 || version < 1 ||
      version > 3)
    return NotNpy(what);
  std::array<std::byte, 4> length{};
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (most < magic.size() + length_bytes) return NotNpy(what);
  RETURN_IF_ERROR(read(std::span(length).first(length_bytes)));
  size_t header = 0;
  for (size_t i = length.size(); i-- > 0;) header = header << 8 | static_cast<size_t>(length[i]);
  size = magic.size() + length_bytes + header;
  if (header > kMostHeader || size > most)
    return DataLoss(what, ": its header should have ", header, " bytes: it is damaged");
  std::string text(header, '\0');
  RETURN_IF_ERROR(read(std::as_writable_bytes(std::span(text))));
  return ParseNpyLayout(text, what);
}

Status CheckExpansion(std::string_view what, uint64_t stored, uint64_t in_memory) {
  if (in_memory <= kFreeBytes || in_memory / kMostExpansion <= stored) return OkStatus();
  return InvalidArgument(what, " would expand from ", stored, " to ", in_memory,
                         " bytes, more than a hundred times as many; if it is meant to, save it ",
                         "without compression (numpy.savez)");
}

}  // namespace

StatusOr<NpyItems> ReadNpyItems(std::string_view what, uint64_t size, uint64_t stored,
                                ReadBytesNext read) {
  NpyItems items;
  ASSIGN_OR_RETURN(items.layout, ReadLayout(what, size, read, items.begin));
  const NpyLayout& layout = items.layout;
  const std::optional<int64_t> elements = layout.shape.CheckedElements();
  const uint64_t rest = size - items.begin;
  if (!elements || static_cast<uint64_t>(*elements) != rest / layout.item ||
      rest % layout.item != 0) {
    return DataLoss(what, ": the shape ", layout.shape.ToString(), " with ", layout.item,
                    " bytes per element does not fit the ", rest,
                    " bytes after the header: it is truncated or damaged");
  }
  items.dtype = TypeOfArray(layout);
  RETURN_IF_ERROR(
      CheckExpansion(what, stored, static_cast<uint64_t>(*elements) * SizeOf(items.dtype)));
  return items;
}

bool NeedsConversion(const NpyLayout& layout) {
  return layout.swap || layout.kind == 'b' || layout.item != SizeOf(TypeOfArray(layout)) ||
         (layout.kind == 'u' && layout.item == 8);
}

Status ReadNpyElements(std::string_view what, const NpyLayout& layout, ReadBytesNext read,
                       Tensor& tensor) {
  ASSIGN_OR_RETURN(const bool fits, ReadItems(layout, read, tensor));
  if (fits) return OkStatus();
  return layout.kind == 'b'
             ? DataLoss(what, ": a bool has a value other than 0 and 1: it is damaged")
             : InvalidArgument(what, ": a uint64 is larger than the largest int64");
}

StatusOr<Tensor> ReadNpyFrom(std::string_view what, uint64_t size, uint64_t stored,
                             ReadBytesNext read) {
  ASSIGN_OR_RETURN(const NpyItems items, ReadNpyItems(what, size, stored, read));
  Tensor tensor(items.dtype, items.layout.shape, Buffer::Contents::kUndefined);
  RETURN_IF_ERROR(ReadNpyElements(what, items.layout, read, tensor));
  return items.layout.fortran && tensor.num_elements() > 0 ? FromFortranOrder(tensor) : tensor;
}

StatusOr<Tensor> ReadNpy(const std::string& path) {
  ASSIGN_OR_RETURN(const RandomAccessFile file, RandomAccessFile::Open(path));
  uint64_t at = 0;
  return ReadNpyFrom(path, file.size(), file.size(), [&](std::span<std::byte> bytes) {
    at += bytes.size();
    return file.Read(at - bytes.size(), bytes);
  });
}

StatusOr<std::string> NpyHeader(DType dtype, const Shape& shape) {
  const char* descr = "<f4";
  switch (dtype) {
    case DType::kFloat32:
      break;
    case DType::kFloat64:
      descr = "<f8";
      break;
    case DType::kInt32:
      descr = "<i4";
      break;
    case DType::kInt64:
      descr = "<i8";
      break;
    case DType::kUInt8:
      descr = "|u1";
      break;
    case DType::kBool:
      descr = "|b1";
      break;
    case DType::kFloat16:
      descr = "<f2";
      break;
    case DType::kBFloat16:
      return Unimplemented("NumPy has no type for bfloat16; convert the array to float32");
  }
  std::string dims;
  for (int64_t dim : shape.dims()) dims += StrCat(dims.empty() ? "" : " ", dim, ",");
  if (shape.rank() > 1) dims.pop_back();
  std::string text =
      StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", dims, "), }");
  // The size of the magic, the version and the header's length. The elements start at a multiple of
  // 64 bytes. Version 1 stores the header's length in two bytes, which suffices for all shapes of
  // tensors.
  constexpr size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header += '\1';
  header += '\0';
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Status WriteNpy(const std::string& path, const Tensor& tensor, FileSystem& files) {
  const std::string temporary = TemporaryPath(path);
  const auto write = [&]() -> Status {
    const auto header = NpyHeader(tensor.dtype(), tensor.shape());
    RETURN_IF_ERROR(Annotate(header.status(), path));
    ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, files.Create(temporary));
    RETURN_IF_ERROR(file->Append(*header));
    const std::span<const std::byte> bytes = tensor.bytes();
    RETURN_IF_ERROR(file->Append({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    RETURN_IF_ERROR(file->Sync());
    return files.Rename(temporary, path);
  };
  if (const Status written = write(); !written.ok()) {
    files.Remove(temporary).IgnoreError();
    return written;
  }
  return files.SyncDirectory(ParentFolder(path));
}

}  // namespace tfjob::io
