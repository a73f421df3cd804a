#include "runtime/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/tensor/half.h"

namespace tfjob::io {
namespace {

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

constexpr char kMetadata[] = "__metadata__";

struct Stored {
  std::string_view name;
  uint64_t size;
  std::optional<DType> dtype;
};

constexpr std::array<Stored, 15> kStored = {{
    {"F32", 4, DType::kFloat32},
    {"F64", 8, DType::kFloat64},
    {"F16", 2, DType::kFloat32},
    {"BF16", 2, DType::kFloat32},
    {"I64", 8, DType::kInt64},
    {"I32", 4, DType::kInt32},
    {"U8", 1, DType::kUInt8},
    {"BOOL", 1, DType::kBool},
    {"I8", 1, std::nullopt},
    {"I16", 2, std::nullopt},
    {"U16", 2, std::nullopt},
    {"U32", 4, std::nullopt},
    {"U64", 8, std::nullopt},
    {"F8_E4M3", 1, std::nullopt},
    {"F8_E5M2", 1, std::nullopt},
}};

const Stored* FindStored(std::string_view name) {
  const auto* found = std::find_if(kStored.begin(), kStored.end(),
                                   [&](const Stored& stored) { return stored.name == name; });
  return found == kStored.end() ? nullptr : found;
}

std::string_view StoredName(DType dtype) {
  if (dtype == DType::kBFloat16) return "BF16";
  if (dtype == DType::kFloat16) return "F16";
  const auto* found = std::find_if(kStored.begin(), kStored.end(), [&](const Stored& stored) {
    return stored.dtype == dtype && stored.size == SizeOf(dtype);
  });
  return found->name;
}

StatusOr<Shape> ReadShape(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  if (!field.present() || elements.size() > 64) return field.Mismatch("a list of dimensions");
  std::vector<int64_t> dims;
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(dims.emplace_back(), element.Int());
  }
  return Shape(std::move(dims));
}

// Reads an entry. `base` is the offset of the first value, `end` the size of the file.
StatusOr<SafetensorsEntry> ReadEntry(const JsonField& field, uint64_t base, uint64_t end) {
  SafetensorsEntry entry;
  ASSIGN_OR_RETURN(entry.stored, field["dtype"].String());
  const Stored* stored = FindStored(entry.stored);
  if (stored == nullptr) return field["dtype"].Mismatch("a type such as F32 or I64");
  entry.dtype = stored->dtype;
  ASSIGN_OR_RETURN(entry.shape, ReadShape(field["shape"]));
  ASSIGN_OR_RETURN(const int64_t first, field["data_offsets"][0].Int());
  ASSIGN_OR_RETURN(const int64_t last, field["data_offsets"][1].Int());
  if (first < 0 || last < first || static_cast<uint64_t>(last) > end - base) {
    return InvalidArgument(field.path(), ": the values are at offsets ", first, " to ", last,
                           ", but the file has only ", end - base, " bytes of values");
  }
  entry.offset = base + static_cast<uint64_t>(first);
  entry.size = static_cast<uint64_t>(last - first);
  const std::optional<int64_t> elements = entry.shape.CheckedElements();
  if (!elements || static_cast<uint64_t>(*elements) > (end - base) / stored->size ||
      static_cast<uint64_t>(*elements) * stored->size != entry.size) {
    return InvalidArgument(field.path(), ": ", entry.stored, entry.shape.ToString(),
                           " does not fit the ", entry.size, " bytes of its offsets");
  }
  return entry;
}

// Reads 16-bit floats, starting at byte `offset` of the file, and widens them to `to`. The 16-bit
// values are first read to the second half of `to`, so that each is widened before it is
// overwritten.
Status ReadHalves(const RandomAccessFile& file, uint64_t offset, bool half,
                  std::span<std::byte> to) {
  const std::span<std::byte> stored = to.last(to.size() / 2);
  RETURN_IF_ERROR(file.Read(offset, stored));
  for (size_t i = 0; i < stored.size() / 2; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, stored.data() + 2 * i, sizeof(bits));
    const float wide = half ? static_cast<float>(Float16::FromBits(bits))
                            : static_cast<float>(BFloat16::FromBits(bits));
    std::memcpy(to.data() + 4 * i, &wide, sizeof(wide));
  }
  return OkStatus();
}

}  // namespace

bool LooksLikeSafetensors(std::string_view beginning) {
  if (beginning.size() < 9) return false;
  uint64_t size = 0;
  std::memcpy(&size, beginning.data(), sizeof(size));
  return size >= 2 && size <= kMaxSafetensorsHeader && beginning[8] == '{';
}

StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  return Open(std::move(file));
}

StatusOr<std::unique_ptr<SafetensorsReader>> SafetensorsReader::Open(RandomAccessFile file) {
  std::unique_ptr<SafetensorsReader> reader(new SafetensorsReader(std::move(file)));
  const Status status = reader->ReadHeader();
  if (absl::IsInvalidArgument(status)) return DataLoss(Message(status));  // damaged
  RETURN_IF_ERROR(status);
  return reader;
}

Status SafetensorsReader::ReadHeader() {
  uint64_t size = 0;
  RETURN_IF_ERROR(file_.Read(0, std::as_writable_bytes(std::span(&size, 1))));
  if (size > kMaxSafetensorsHeader || size > file_.size() - 8) {
    return DataLoss(file_.path(), ": not a safetensors file, or cut off: the header would have ",
                    size, " bytes; the file has ", file_.size(), ", and at most ",
                    kMaxSafetensorsHeader, " are allowed");
  }
  std::string text(size, '\0');
  RETURN_IF_ERROR(file_.Read(8, std::as_writable_bytes(std::span(text))));
  ASSIGN_OR_RETURN(const Json document, ParseJson(text, StrCat(file_.path(), ": the header")));
  ASSIGN_OR_RETURN(const auto members, JsonField(document, file_.path()).Members());
  for (const auto& [name, field] : members) {
    if (name == kMetadata) {
      ASSIGN_OR_RETURN(const auto pairs, field.Members());
      for (const auto& [key, value] : pairs) {
        ASSIGN_OR_RETURN(metadata_[key], value.String());
      }
    } else {
      ASSIGN_OR_RETURN(entries_[name], ReadEntry(field, 8 + size, file_.size()));
    }
  }
  return CheckCovers(8 + size);
}

// Checks that the tensors follow one another without gaps, up to the end of the file.
Status SafetensorsReader::CheckCovers(uint64_t begin) const {
  std::vector<std::pair<uint64_t, uint64_t>> parts;  // offset, size
  parts.reserve(entries_.size());
  for (const auto& [name, entry] : entries_) parts.emplace_back(entry.offset, entry.size);
  std::sort(parts.begin(), parts.end());
  for (const auto& [offset, size] : parts) {
    if (offset != begin)
      return DataLoss(file_.path(), ": the tensors overlap or leave a gap at offset ", begin);
    begin += size;
  }
  if (begin == file_.size()) return OkStatus();
  return DataLoss(file_.path(), ": the tensors end at offset ", begin, ", but the file has ",
                  file_.size(), " bytes");
}

StatusOr<const SafetensorsEntry*> SafetensorsReader::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    std::vector<std::string> names;
    for (const auto& [other, entry] : entries_) names.push_back(other);
    return NotFound(file_.path(), ": there is no tensor ", name, DidYouMean(name, names));
  }
  if (found->second.dtype) return &found->second;
  return Unimplemented(file_.path(), ": ", name, " has type ", found->second.stored,
                       ", which is not supported; use F32, F64, F16, BF16, I32, I64, U8 or BOOL");
}

StatusOr<Tensor> SafetensorsReader::Read(const std::string& name) const {
  ASSIGN_OR_RETURN(const SafetensorsEntry* entry, Find(name));
  Tensor tensor(*entry->dtype, entry->shape, Buffer::Contents::kUndefined);
  RETURN_IF_ERROR(ReadPiece(name, 0, tensor.bytes()));
  return tensor;
}

Status SafetensorsReader::ReadPiece(const std::string& name, int64_t offset,
                                    std::span<std::byte> to) const {
  ASSIGN_OR_RETURN(const SafetensorsEntry* entry, Find(name));
  const bool half = entry->stored == "F16", wide = half || entry->stored == "BF16";
  const uint64_t begin = static_cast<uint64_t>(offset) / (wide ? 2 : 1);
  const uint64_t size = to.size() / (wide ? 2 : 1);
  if (offset < 0 || begin > entry->size || size > entry->size - begin) {
    return InvalidArgument(file_.path(), ": ", name, ": expected bytes of a tensor of ",
                           entry->size * (wide ? 2 : 1), " bytes, got ", to.size(), " from byte ",
                           offset);
  }
  if (wide) return ReadHalves(file_, entry->offset + begin, half, to);
  RETURN_IF_ERROR(file_.Read(entry->offset + begin, to));
  if (entry->dtype == DType::kBool) {
    for (std::byte& value : to) value = value == std::byte{0} ? value : std::byte{1};
  }
  return OkStatus();
}

StatusOr<std::string> SafetensorsHeader(const NamedTensors& tensors,
                                        const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (header.contains(name) || name == kMetadata)
      return InvalidArgument("two tensors are called \"", name, "\"");
    header[name] = {{"dtype", std::string(StoredName(tensor.dtype()))},
                    {"shape", tensor.shape().dims()},
                    {"data_offsets", {offset, offset + tensor.num_bytes()}}};
    offset += tensor.num_bytes();
  }
  std::string text = PrintJson(header);
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the values
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text;
}

Status WriteSafetensors(const std::string& path, const NamedTensors& tensors,
                        const std::map<std::string, std::string>& metadata, FileSystem& files) {
  ASSIGN_OR_RETURN(const std::string header, SafetensorsHeader(tensors, metadata));
  return WriteFileAtomically(
      path,
      [&](OutputFile& file) -> Status {
        RETURN_IF_ERROR(file.Append(header));
        for (const auto& [name, tensor] : tensors) {
          const auto bytes = tensor.bytes();
          RETURN_IF_ERROR(file.Append({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
        }
        return OkStatus();
      },
      files);
}

}  // namespace tfjob::io
