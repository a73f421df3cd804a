#include "runtime/model/keras/archive.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/io/zip_reader.h"

namespace tfjob::keras {
namespace {

constexpr uint64_t kMaxConfig = 64 << 20;
constexpr uint64_t kFreeBytes = 256 << 20;
constexpr uint64_t kMaxExpansion = 100;
constexpr char kWeights[] = "model.weights.h5";

StatusOr<std::unique_ptr<io::ZipReader>> Open(const std::string& path, const std::string& member) {
  ASSIGN_OR_RETURN(auto zip, io::ZipReader::Open(path));
  if (zip->members().contains(member)) return zip;
  return InvalidArgument(path, " is not a .keras file: it has no ", member);
}

// Unpacks a member of the archive into a file in memory. Errors about this file contain the
// archive's name.
StatusOr<io::MemoryFile> Unpack(const io::ZipReader& zip, const std::string& member) {
  ASSIGN_OR_RETURN(io::MemoryFile unpacked, io::MemoryFile::Create(zip.path()));
  ASSIGN_OR_RETURN(const auto stream, zip.Stream(member));
  std::array<std::byte, 1 << 16> buffer;
  for (uint64_t left = zip.members().at(member).size; left > 0;) {
    const auto part = std::span(buffer).first(std::min<uint64_t>(left, buffer.size()));
    RETURN_IF_ERROR(stream->Read(part));
    RETURN_IF_ERROR(unpacked.Append({reinterpret_cast<const char*>(part.data()), part.size()}));
    left -= part.size();
  }
  return unpacked;
}

}  // namespace

StatusOr<Json> ReadArchiveConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const auto zip, Open(path, "config.json"));
  ASSIGN_OR_RETURN(const std::string text, zip->Read("config.json", kMaxConfig));
  ASSIGN_OR_RETURN(Json config, ParseJson(text, StrCat(path, ": config.json")));
  if (!config.is_object()) return InvalidArgument(path, ": config.json: expected an object");
  if (!zip->members().contains("metadata.json")) return config;
  ASSIGN_OR_RETURN(const std::string more, zip->Read("metadata.json", kMaxConfig));
  ASSIGN_OR_RETURN(const Json metadata, ParseJson(more, StrCat(path, ": metadata.json")));
  const StatusOr<std::string> version = JsonField(metadata)["keras_version"].String();
  if (version.ok()) config["keras_version"] = *version;
  return config;
}

StatusOr<std::unique_ptr<io::Hdf5File>> ReadArchiveWeights(const std::string& path) {
  ASSIGN_OR_RETURN(const auto zip, Open(path, kWeights));
  const io::ZipMember& member = zip->members().at(kWeights);
  if (member.size > kFreeBytes && member.size / kMaxExpansion > member.packed) {
    return InvalidArgument(path, ": ", kWeights, " would unpack from ", member.packed, " to ",
                           member.size, " bytes, more than a hundred times as many");
  }
  ASSIGN_OR_RETURN(const io::MemoryFile unpacked, Unpack(*zip, kWeights));
  ASSIGN_OR_RETURN(io::RandomAccessFile file, unpacked.Reopened());
  return io::Hdf5File::Open(std::move(file));
}

}  // namespace tfjob::keras
