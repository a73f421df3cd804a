#include "runtime/io/bundle_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/bundle_index.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/data_file.h"
#include "runtime/io/tensor_slice.h"

namespace tfjob::io {
namespace {

// The largest index that is accepted. It suffices for millions of tensors.
constexpr uint64_t kMaxIndexBytes = 256 << 20;
constexpr int64_t kMaxStringBytes = 64 << 20;
constexpr int kString = 7;  // TensorFlow's DataType
// The number of bytes of a slice that are read at once, if they are not contiguous in the tensor.
constexpr int64_t kSliceBytes = 1 << 20;

// Returns a hint for users who pass the data file, the index or the folder instead of the prefix.
// Returns "" if `prefix` is none of these.
std::string Advice(const std::string& prefix) {
  const size_t cut = std::min(prefix.rfind(".data-"), prefix.rfind(".index"));
  if (cut != std::string::npos) return StrCat("; use the prefix ", prefix.substr(0, cut));
  if (std::filesystem::is_directory(prefix))
    return "; it is a folder: use the prefix of a checkpoint in it";
  return "";
}

// Parses a tensor that consists of a single string: the length as a varint, the masked checksum of
// the length, and the text. The tensor's own checksum covers the length as a 4-byte integer, the
// masked checksum of the length, and the text. Returns nullopt if a checksum or the length is
// wrong.
std::optional<std::string> ParseString(std::string_view bytes, uint32_t masked_crc) {
  uint64_t length = 0;
  size_t at = 0;
  for (int shift = 0; at < bytes.size() && shift < 35; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    length |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) break;
  }
  if (bytes.size() - at < 4 || length != bytes.size() - at - 4) return std::nullopt;
  const auto short_length = static_cast<uint32_t>(length);
  uint32_t crc = Crc32c(std::as_bytes(std::span(&short_length, 1)));
  uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + at, sizeof(stored));
  if (stored != MaskCrc(crc)) return std::nullopt;
  crc = ExtendCrc32c(crc, std::as_bytes(std::span(bytes).subspan(at)));
  if (MaskCrc(crc) != masked_crc) return std::nullopt;
  return std::string(bytes.substr(at + 4));
}

// Returns the number of elements, or nullopt if the product of any dimensions does not fit into 63
// bits. A dimension of 0 does not make other products fit.
std::optional<int64_t> ElementsOf(const Shape& shape) {
  std::vector<int64_t> dims = shape.dims();
  std::ranges::replace(dims, 0, 1);
  if (!Shape(std::move(dims)).CheckedElements()) return std::nullopt;
  return shape.CheckedElements();
}

std::string NameOfSlice(const std::string& name, const BundleSlice& part) {
  return StrCat(name, ", slice ", part.slice.ToString(), ",");
}

}  // namespace

StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(std::string prefix) {
  std::unique_ptr<BundleReader> reader(new BundleReader(std::move(prefix)));
  RETURN_IF_ERROR(reader->ReadIndex());
  RETURN_IF_ERROR(reader->CheckDataFiles());
  return reader;
}

Status BundleReader::ReadIndex() {
  const std::string path = IndexFileName(prefix_);
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory) {
    return NotFound("no checkpoint ", prefix_, " (", path, ": ", error.message(), ")",
                    Advice(prefix_));
  }
  if (error) return ErrnoStatus(error.value(), path);

  if (size > kMaxIndexBytes)
    return DataLoss(path, " has ", size, " bytes, more than a checkpoint's index may have");
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(BundleIndex index, ReadBundleIndex(path, text));
  shards_ = index.shards;
  entries_ = std::move(index.entries);
  return OkStatus();
}

StatusOr<int64_t> BundleReader::DataFileSize(int shard) const {
  const std::string path = DataFileName(prefix_, shard, shards_);
  std::error_code error;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  if (!error) return size;
  // Return DataLoss, because the index exists: the checkpoint was complete and was damaged later.
  if (error == std::errc::no_such_file_or_directory)
    return DataLoss("checkpoint ", prefix_, " lacks ", path);
  return ErrnoStatus(error.value(), StrCat("checkpoint ", prefix_, ": ", path));
}

// Checks that the location is within its data file. `sizes` contains the sizes of the data files
// that were already looked up.
Status BundleReader::CheckLocation(const std::string& what, const BundleLocation& location,
                                   std::map<int, int64_t>& sizes) const {
  if (location.shard < 0 || location.shard >= shards_)
    return DataLoss(prefix_, ": ", what, " is in a nonexistent shard ", location.shard);
  if (!sizes.contains(location.shard)) {
    ASSIGN_OR_RETURN(sizes[location.shard], DataFileSize(location.shard));
  }
  const int64_t size = sizes[location.shard];
  if (location.size <= size && location.offset <= size - location.size) return OkStatus();
  return DataLoss(DataFileName(prefix_, location.shard, shards_), " has ", size,
                  " bytes, but the index says that ", what, " has ", location.size,
                  " bytes at byte ", location.offset);
}

Status BundleReader::CheckDataFiles() const {
  std::map<int, int64_t> sizes;
  for (const auto& [name, entry] : entries_) {
    if (entry.slices.empty()) RETURN_IF_ERROR(CheckLocation(name, entry.location, sizes));
    // Slices that share bytes could make a small file expand to a tensor of any size.
    std::map<int, int64_t> left;
    for (const BundleSlice& part : entry.slices) {
      const BundleLocation& location = part.location;
      RETURN_IF_ERROR(CheckLocation(NameOfSlice(name, part), location, sizes));
      const auto [at, added] = left.emplace(location.shard, sizes[location.shard]);
      if (location.size > at->second) {
        return DataLoss(DataFileName(prefix_, location.shard, shards_), " has ",
                        sizes[location.shard], " bytes, but the index says that the slices of ",
                        name, " have more bytes in total");
      }
      at->second -= location.size;
    }
  }
  return OkStatus();
}

StatusOr<const BundleEntry*> BundleReader::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return &found->second;
  return NotFound("checkpoint ", prefix_, " has no tensor ", name);
}

StatusOr<std::shared_ptr<const DataFile>> BundleReader::OpenShard(int shard) const {
  return DataFile::Open(DataFileName(prefix_, shard, shards_));
}

Status BundleReader::WrongChecksum(const std::string& what) const {
  return DataLoss("checkpoint ", prefix_, ": the checksum of ", what, " is wrong");
}

StatusOr<std::string> BundleReader::ReadString(const std::string& name) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  if (!entry->slices.empty() || entry->tensorflow_dtype != kString || entry->shape.rank() != 0)
    return Unimplemented("checkpoint ", prefix_, ": ", name, " is not a single string");
  if (entry->size > kMaxStringBytes)
    return DataLoss("checkpoint ", prefix_, ": ", name, " has ", entry->size, " bytes");
  std::string bytes(static_cast<size_t>(entry->size), '\0');
  ASSIGN_OR_RETURN(const auto file, OpenShard(entry->location.shard));
  RETURN_IF_ERROR(file->Read(entry->location.offset, std::as_writable_bytes(std::span(bytes))));
  std::optional<std::string> text = ParseString(bytes, entry->location.masked_crc);
  if (text) return *std::move(text);
  return DataLoss("checkpoint ", prefix_, ": the string ", name, " is damaged");
}

StatusOr<std::pair<const BundleEntry*, DType>> BundleReader::FindTensor(
    const std::string& name) const {
  ASSIGN_OR_RETURN(const BundleEntry* entry, Find(name));
  const std::optional<DType> dtype = DTypeFromTensorFlow(entry->tensorflow_dtype);
  if (!dtype) {
    return Unimplemented("checkpoint ", prefix_, ": ", name, " has TensorFlow's element type ",
                         entry->tensorflow_dtype, ", which is not supported");
  }
  // Check the shapes against the sizes, which Open has checked against the files, before allocating
  // memory for the tensor.
  const auto check = [&](const std::string& what, const Shape& shape, int64_t size) -> Status {
    const std::optional<int64_t> elements = ElementsOf(shape);
    const auto item = static_cast<int64_t>(SizeOf(*dtype));
    if (elements && size % item == 0 && size / item == *elements) return OkStatus();
    return DataLoss("checkpoint ", prefix_, ": ", what, " has ", size, " bytes for the shape ",
                    shape.ToString());
  };
  if (entry->slices.empty()) RETURN_IF_ERROR(check(name, entry->shape, entry->size));
  if (!entry->slices.empty() && !ElementsOf(entry->shape)) {
    return DataLoss("checkpoint ", prefix_, ": the shape ", entry->shape.ToString(), " of ", name,
                    " is too large");
  }
  for (const BundleSlice& part : entry->slices) {
    RETURN_IF_ERROR(check(NameOfSlice(name, part), Shape(part.slice.length), part.location.size));
  }
  return std::pair(entry, *dtype);
}

StatusOr<Tensor> BundleReader::Read(const std::string& name) const {
  ASSIGN_OR_RETURN(const auto found, FindTensor(name));
  Tensor tensor(found.second, found.first->shape, Buffer::Contents::kUndefined);
  RETURN_IF_ERROR(ReadInto(name, tensor));
  return tensor;
}

Status BundleReader::ReadInto(const std::string& name, Tensor to, ThreadPool* pool) const {
  ASSIGN_OR_RETURN(const auto found, FindTensor(name));
  const auto& [entry, dtype] = found;
  if (to.dtype() != dtype || to.shape() != entry->shape) {
    return InvalidArgument("checkpoint ", prefix_, ": ", name, " is ", Name(dtype),
                           entry->shape.ToString(), ", expected ", Name(to.dtype()),
                           to.shape().ToString());
  }
  for (const BundleSlice& part : entry->slices) RETURN_IF_ERROR(ReadSlice(name, part, to, pool));
  if (!entry->slices.empty()) return OkStatus();
  const BundleLocation& location = entry->location;
  ASSIGN_OR_RETURN(const auto file, OpenShard(location.shard));
  ASSIGN_OR_RETURN(const uint32_t crc, file->ReadWithChecksum(location.offset, to.bytes(), pool));
  return MaskCrc(crc) == location.masked_crc ? OkStatus() : WrongChecksum(name);
}

// Reads a slice of the tensor `name` into its place in `to`.
Status BundleReader::ReadSlice(const std::string& name, const BundleSlice& slice, Tensor& to,
                               ThreadPool* pool) const {
  const BundleLocation& location = slice.location;
  const SlicePositions positions(to.shape(), slice.slice);
  const auto item = static_cast<int64_t>(SizeOf(to.dtype()));
  const auto bytes_of_tensor = [&](int64_t position, int64_t count) {
    return to.bytes().subspan(static_cast<size_t>(positions.InTensor(position) * item),
                              static_cast<size_t>(count * item));
  };
  if (positions.size() == 0) return OkStatus();
  ASSIGN_OR_RETURN(const auto file, OpenShard(location.shard));
  uint32_t crc = 0;
  if (positions.block() == positions.size()) {
    ASSIGN_OR_RETURN(
        crc, file->ReadWithChecksum(location.offset, bytes_of_tensor(0, positions.size()), pool));
  } else {
    std::vector<std::byte> buffer(static_cast<size_t>(std::min(location.size, kSliceBytes)));
    const int64_t most = static_cast<int64_t>(buffer.size()) / item;
    for (int64_t begin = 0; begin < positions.size(); begin += most) {
      const int64_t end = std::min(begin + most, positions.size());
      const auto piece = std::span(buffer).first(static_cast<size_t>((end - begin) * item));
      RETURN_IF_ERROR(file->Read(location.offset + begin * item, piece));
      crc = ExtendCrc32c(crc, piece);
      for (int64_t at = begin; at < end;) {
        const int64_t count = std::min(positions.block() - at % positions.block(), end - at);
        const auto block = bytes_of_tensor(at, count);
        std::memcpy(block.data(), &buffer[static_cast<size_t>((at - begin) * item)], block.size());
        at += count;
      }
    }
  }
  if (MaskCrc(crc) == location.masked_crc) return OkStatus();
  return WrongChecksum(NameOfSlice(name, slice));
}

StatusOr<StoredTensor> BundleReader::Store(const std::string& name) const {
  ASSIGN_OR_RETURN(const auto found, FindTensor(name));
  const auto& [entry, dtype] = found;
  std::vector<StoredTensor::Part> parts;
  std::map<int, std::shared_ptr<const DataFile>> files;
  const auto add = [&](const std::string& what, const BundleLocation& location,
                       const TensorSlice& slice) -> Status {
    std::shared_ptr<const DataFile>& file = files[location.shard];
    if (file == nullptr) {
      ASSIGN_OR_RETURN(file, OpenShard(location.shard));
    }
    ASSIGN_OR_RETURN(const uint32_t crc, file->Checksum(location.offset, location.size));
    if (MaskCrc(crc) != location.masked_crc) return WrongChecksum(what);
    parts.push_back({file, location.offset, SlicePositions(entry->shape, slice)});
    return OkStatus();
  };
  if (entry->slices.empty()) RETURN_IF_ERROR(add(name, entry->location, WholeSlice(entry->shape)));
  for (const BundleSlice& part : entry->slices)
    RETURN_IF_ERROR(add(NameOfSlice(name, part), part.location, part.slice));
  return StoredTensor(std::move(parts), dtype, entry->shape);
}

}  // namespace tfjob::io
