#include "runtime/io/bundle_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/data_file.h"
#include "runtime/io/table_reader.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

// The largest index that is accepted. It suffices for millions of tensors.
constexpr uint64_t kMaxIndexBytes = 256 << 20;
constexpr int kMaxRank = 256;  // TensorFlow's limit is 254
constexpr int64_t kMaxStringBytes = 64 << 20;
constexpr int kString = 7;  // TensorFlow's DataType

// Returns a hint for users who pass the data file, the index or the folder instead of the prefix.
// Returns "" if `prefix` is none of these.
std::string Advice(const std::string& prefix) {
  const size_t cut = std::min(prefix.rfind(".data-"), prefix.rfind(".index"));
  if (cut != std::string::npos) return StrCat("; use the prefix ", prefix.substr(0, cut));
  if (std::filesystem::is_directory(prefix))
    return "; it is a folder: use the prefix of a checkpoint in it";
  return "";
}

StatusOr<BundleEntry> ParseEntry(const std::string& name, const std::string& value) {
  BundleEntryProto proto;
  if (!proto.ParseFromString(value))
    return DataLoss("the entry of ", name, " is not a BundleEntryProto");
  if (proto.shape().dim_size() > kMaxRank)
    return DataLoss(name, " has ", proto.shape().dim_size(), " dimensions");
  std::vector<int64_t> dims;
  for (const auto& dim : proto.shape().dim()) {
    if (dim.size() < 0 || dim.size() > (int64_t{1} << 40))
      return DataLoss("the shape of ", name, " is invalid");
    dims.push_back(dim.size());
  }
  if (proto.offset() < 0 || proto.size() < 0)
    return DataLoss("the location of ", name, " is invalid");
  return BundleEntry{.tensorflow_dtype = proto.dtype(),
                     .shape = Shape(std::move(dims)),
                     .shard = proto.shard_id(),
                     .offset = proto.offset(),
                     .size = proto.size(),
                     .masked_crc = proto.crc32c(),
                     .partitioned = proto.slices_size() > 0};
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
  const auto table = ReadTable(text);
  if (!table.ok()) {
    return Annotate(table.status(), StrCat(path, " is not a checkpoint index or is damaged"));
  }
  for (const auto& [name, value] : *table) RETURN_IF_ERROR(ReadIndexEntry(path, name, value));
  if (shards_ == 0) return DataLoss(path, " has no header");
  return OkStatus();
}

Status BundleReader::ReadIndexEntry(const std::string& path, const std::string& name,
                                    const std::string& value) {
  if (name.empty()) {
    BundleHeaderProto header;
    if (!header.ParseFromString(value) || header.num_shards() < 1)
      return DataLoss(path, ": its header is not a BundleHeaderProto");
    if (header.endianness() != 0)
      return Unimplemented(path, ": big-endian checkpoints are not supported");
    shards_ = header.num_shards();
    return OkStatus();
  }
  if (name[0] == '\0') return OkStatus();  // a slice of a partitioned variable
  StatusOr<BundleEntry> entry = ParseEntry(name, value);
  if (!entry.ok()) return Annotate(entry.status(), path);
  entries_[name] = *std::move(entry);
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

Status BundleReader::CheckDataFiles() const {
  std::map<int, int64_t> sizes;
  for (const auto& [name, entry] : entries_) {
    if (entry.partitioned) continue;
    if (entry.shard < 0 || entry.shard >= shards_)
      return DataLoss(prefix_, ": ", name, " is in a nonexistent shard ", entry.shard);
    if (!sizes.contains(entry.shard)) {
      ASSIGN_OR_RETURN(sizes[entry.shard], DataFileSize(entry.shard));
    }
    const int64_t size = sizes[entry.shard];
    if (entry.size > size || entry.offset > size - entry.size) {
      return DataLoss(DataFileName(prefix_, entry.shard, shards_), " has ", size,
                      " bytes, but the index says that ", name, " has ", entry.size,
                      " bytes at byte ", entry.offset);
    }
  }
  return OkStatus();
}

StatusOr<BundleEntry> BundleReader::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  return NotFound("checkpoint ", prefix_, " has no tensor ", name);
}

StatusOr<std::string> BundleReader::ReadString(const std::string& name) const {
  ASSIGN_OR_RETURN(const BundleEntry entry, Find(name));
  if (entry.partitioned || entry.tensorflow_dtype != kString || entry.shape.rank() != 0)
    return Unimplemented("checkpoint ", prefix_, ": ", name, " is not a single string");
  if (entry.size > kMaxStringBytes)
    return DataLoss("checkpoint ", prefix_, ": ", name, " has ", entry.size, " bytes");
  std::string bytes(static_cast<size_t>(entry.size), '\0');
  ASSIGN_OR_RETURN(const auto file, DataFile::Open(DataFileName(prefix_, entry.shard, shards_)));
  RETURN_IF_ERROR(file->Read(entry.offset, std::as_writable_bytes(std::span(bytes))));
  std::optional<std::string> text = ParseString(bytes, entry.masked_crc);
  if (text) return *std::move(text);
  return DataLoss("checkpoint ", prefix_, ": the string ", name, " is damaged");
}

StatusOr<std::pair<BundleEntry, DType>> BundleReader::FindTensor(const std::string& name) const {
  ASSIGN_OR_RETURN(const BundleEntry entry, Find(name));
  const std::optional<DType> dtype = DTypeFromTensorFlow(entry.tensorflow_dtype);
  if (entry.partitioned)
    return Unimplemented("checkpoint ", prefix_, ": ", name, " is partitioned; save it whole");
  if (!dtype) {
    return Unimplemented("checkpoint ", prefix_, ": ", name, " has TensorFlow's element type ",
                         entry.tensorflow_dtype, ", which is not supported");
  }
  // Check the shape against the size, which Open has checked against the file, before allocating
  // memory for the tensor.
  const auto elements = static_cast<unsigned __int128>(entry.size) / SizeOf(*dtype);
  unsigned __int128 wanted = 1;
  for (int64_t dim : entry.shape.dims()) {
    wanted *= static_cast<unsigned __int128>(dim);
    if (wanted > (static_cast<unsigned __int128>(1) << 62)) break;
  }
  if (wanted != elements || static_cast<size_t>(entry.size) % SizeOf(*dtype) != 0) {
    return DataLoss("checkpoint ", prefix_, ": ", name, " has ", entry.size,
                    " bytes for the shape ", entry.shape.ToString());
  }
  return std::pair(entry, *dtype);
}

StatusOr<Tensor> BundleReader::Read(const std::string& name) const {
  ASSIGN_OR_RETURN(const auto found, FindTensor(name));
  Tensor tensor(found.second, found.first.shape, Buffer::Contents::kUndefined);
  RETURN_IF_ERROR(ReadInto(name, tensor));
  return tensor;
}

Status BundleReader::ReadInto(const std::string& name, Tensor to, ThreadPool* pool) const {
  ASSIGN_OR_RETURN(const auto found, FindTensor(name));
  const auto& [entry, dtype] = found;
  if (to.dtype() != dtype || to.shape() != entry.shape) {
    return InvalidArgument("checkpoint ", prefix_, ": ", name, " is ", Name(dtype),
                           entry.shape.ToString(), ", expected ", Name(to.dtype()),
                           to.shape().ToString());
  }
  ASSIGN_OR_RETURN(const auto file, DataFile::Open(DataFileName(prefix_, entry.shard, shards_)));
  ASSIGN_OR_RETURN(const uint32_t crc, file->ReadWithChecksum(entry.offset, to.bytes(), pool));
  if (MaskCrc(crc) != entry.masked_crc) {
    return DataLoss("checkpoint ", prefix_, ": the checksum of ", name, " is wrong");
  }
  return OkStatus();
}

StatusOr<StoredTensor> BundleReader::Store(const std::string& name) const {
  ASSIGN_OR_RETURN(const auto found, FindTensor(name));
  const auto& [entry, dtype] = found;
  ASSIGN_OR_RETURN(auto file, DataFile::Open(DataFileName(prefix_, entry.shard, shards_)));
  ASSIGN_OR_RETURN(const uint32_t crc, file->Checksum(entry.offset, entry.size));
  if (MaskCrc(crc) != entry.masked_crc) {
    return DataLoss("checkpoint ", prefix_, ": the checksum of ", name, " is wrong");
  }
  return StoredTensor(std::move(file), dtype, entry.shape, entry.offset);
}

}  // namespace tfjob::io
