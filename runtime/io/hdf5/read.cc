#include "runtime/io/hdf5/read.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/io/hdf5/handle.h"

namespace tfjob::io {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxObjects = 1'000'000;
constexpr uint64_t kFreeBytes = 64 << 20;
constexpr uint64_t kMaxExpansion = 16;

struct Dataset {
  std::string path;
  std::string stored;  // safetensors' name for the type
  std::vector<hsize_t> dims;
  uint64_t bytes = 0;
};

// The datasets, attributes and skipped objects found while walking through a file.
struct Contents {
  uint64_t most_bytes = 0;
  uint64_t bytes = 0;
  size_t objects = 0;
  std::vector<Dataset> datasets;
  Json attributes = Json::object();
  Json skipped = Json::object();
};

// Returns safetensors' name for a numeric type, or nullopt for other types.
std::optional<std::string> StoredName(hid_t type, const std::string& stated) {
  const size_t size = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      if (size == 2 && H5Tget_ebias(type) == 15) return "F16";
      if (size == 4 || size == 8) return StrCat("F", size * 8);
      return std::nullopt;
    case H5T_INTEGER:
      if (size != 1 && size != 2 && size != 4 && size != 8) return std::nullopt;
      return StrCat(H5Tget_sign(type) == H5T_SGN_NONE ? "U" : "I", size * 8);
    case H5T_ENUM:  // h5py writes bool as an enumeration of FALSE and TRUE
      if (size == 1 && H5Tget_nmembers(type) == 2) return "BOOL";
      return std::nullopt;
    case H5T_OPAQUE:  // Keras writes bfloat16 as opaque bytes, with an attribute
      if (size == 2 && stated == "bfloat16") return "BF16";
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Returns the strings in a buffer that contains either pointers to the strings or `size` bytes per
// string.
std::vector<std::string> TextsOf(const std::vector<char>& buffer, size_t count, size_t size,
                                 bool pointers) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    if (pointers) {
      const char* text = nullptr;
      std::memcpy(&text, buffer.data() + i * sizeof(text), sizeof(text));
      texts.emplace_back(text == nullptr ? "" : text);
    } else {
      const char* text = buffer.data() + i * size;
      texts.emplace_back(text, strnlen(text, size));
    }
  }
  return texts;
}

// Reads an attribute that is a string, a list of strings, or an empty list. Returns null for any
// other attribute.
StatusOr<Json> ReadAttribute(hid_t attribute, uint64_t most_bytes) {
  const Hdf5Handle type(H5Aget_type(attribute), H5Tclose);
  const Hdf5Handle space(H5Aget_space(attribute), H5Sclose);
  if (!type.ok() || !space.ok()) return Hdf5Error("an attribute cannot be read");
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (count == 0) return Json::array();
  if (count < 0 || rank > 1 || H5Tget_class(type.get()) != H5T_STRING) return Json();
  const bool pointers = H5Tis_variable_str(type.get()) > 0;
  const size_t size = pointers ? sizeof(char*) : H5Tget_size(type.get());
  if (size == 0 || static_cast<uint64_t>(count) > most_bytes / size)
    return DataLoss("an attribute is too large");
  std::vector<char> buffer(static_cast<size_t>(count) * size);
  const Hdf5Handle memory(H5Tcopy(type.get()), H5Tclose);
  if (H5Aread(attribute, memory.get(), buffer.data()) < 0)
    return Hdf5Error("an attribute cannot be read");
  const auto texts = TextsOf(buffer, static_cast<size_t>(count), size, pointers);
  if (pointers) H5Dvlen_reclaim(memory.get(), space.get(), H5P_DEFAULT, buffer.data());
  return rank == 0 ? Json(texts[0]) : Json(texts);
}

StatusOr<Json> ReadAttributes(hid_t object, uint64_t most_bytes) {
  H5O_info_t info;
  if (H5Oget_info2(object, &info, H5O_INFO_NUM_ATTRS) < 0)
    return Hdf5Error("the attributes cannot be read");
  Json found = Json::object();
  for (hsize_t i = 0; i < info.num_attrs; ++i) {
    const Hdf5Handle attribute(
        H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_NATIVE, i, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    if (!attribute.ok()) return Hdf5Error("an attribute cannot be opened");
    char name[1024] = "";
    if (H5Aget_name(attribute.get(), sizeof(name), name) < 0)
      return Hdf5Error("an attribute has no name");
    ASSIGN_OR_RETURN(Json value, ReadAttribute(attribute.get(), most_bytes));
    if (!value.is_null()) found[name] = std::move(value);
  }
  return found;
}

Status AddDataset(hid_t dataset, const std::string& path, const Json& attributes,
                  Contents& contents) {
  const Hdf5Handle type(H5Dget_type(dataset), H5Tclose);
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  if (!type.ok() || !space.ok()) return Hdf5Error(StrCat(path, " cannot be read"));
  const auto stated = attributes.find("dtype");
  const std::optional<std::string> stored = StoredName(
      type.get(),
      stated != attributes.end() && stated->is_string() ? stated->get<std::string>() : "");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  if (!stored || rank < 0) {
    contents.skipped[path] = "it does not contain numbers";
    return OkStatus();
  }
  Dataset found{.path = path, .stored = *stored, .dims = std::vector<hsize_t>(rank)};
  H5Sget_simple_extent_dims(space.get(), found.dims.data(), nullptr);
  found.bytes = H5Tget_size(type.get());
  for (hsize_t dim : found.dims) {
    if (__builtin_mul_overflow(found.bytes, dim, &found.bytes)) found.bytes = UINT64_MAX;
  }
  if (found.bytes > contents.most_bytes - contents.bytes) {
    return DataLoss(path, " has ", found.bytes, " bytes; the datasets of this file may have ",
                    contents.most_bytes, " in all");
  }
  contents.bytes += found.bytes;
  contents.datasets.push_back(std::move(found));
  return OkStatus();
}

Status Walk(hid_t group, const std::string& path, int depth, Contents& contents);

Status AddObject(hid_t parent, const std::string& name, const std::string& path, int depth,
                 Contents& contents) {
  const Hdf5Handle object(H5Oopen(parent, name.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object.ok()) return Hdf5Error(StrCat(path, " cannot be opened"));
  if (++contents.objects > kMaxObjects) return DataLoss("too many objects");
  const H5I_type_t kind = H5Iget_type(object.get());
  if (kind == H5I_GROUP) return Walk(object.get(), path, depth + 1, contents);
  if (kind != H5I_DATASET) return OkStatus();
  ASSIGN_OR_RETURN(const Json attributes, ReadAttributes(object.get(), contents.most_bytes));
  return AddDataset(object.get(), path, attributes, contents);
}

Status AddLink(hid_t group, hsize_t index, const std::string& parent, int depth,
               Contents& contents) {
  char name[1024] = "";
  H5L_info_t link;
  if (H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_NATIVE, index, name, sizeof(name),
                         H5P_DEFAULT) < 0 ||
      H5Lget_info(group, name, &link, H5P_DEFAULT) < 0) {
    return Hdf5Error(StrCat("the group ", parent, "/ cannot be read"));
  }
  const std::string path = parent.empty() ? name : StrCat(parent, "/", name);
  if (!IsUtf8(path)) return DataLoss("a name is not UTF-8");
  if (link.type == H5L_TYPE_HARD) return AddObject(group, name, path, depth, contents);
  contents.skipped[path] = "it is a link";
  return OkStatus();
}

Status Walk(hid_t group, const std::string& path, int depth, Contents& contents) {
  if (depth > kMaxDepth) return DataLoss("groups are nested deeper than ", kMaxDepth, " levels");
  ASSIGN_OR_RETURN(Json attributes, ReadAttributes(group, contents.most_bytes));
  if (!attributes.empty()) contents.attributes[path] = std::move(attributes);
  H5G_info_t info;
  if (H5Gget_info(group, &info) < 0)
    return Hdf5Error(StrCat("the group ", path, "/ cannot be read"));
  for (hsize_t i = 0; i < info.nlinks; ++i)
    RETURN_IF_ERROR(AddLink(group, i, path, depth, contents));
  return OkStatus();
}

std::string Header(const Contents& contents) {
  Json header = {
      {"__metadata__",
       {{"attributes", PrintJson(contents.attributes)}, {"skipped", PrintJson(contents.skipped)}}}};
  uint64_t offset = 0;
  for (const Dataset& dataset : contents.datasets) {
    header[dataset.path] = {{"dtype", dataset.stored},
                            {"shape", dataset.dims},
                            {"data_offsets", {offset, offset + dataset.bytes}}};
    offset += dataset.bytes;
  }
  const std::string text = PrintJson(header);
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text;
}

Status CopyDataset(hid_t file, const Dataset& found, OutputFile& output) {
  if (found.bytes == 0) return OkStatus();
  const Hdf5Handle dataset(H5Dopen2(file, found.path.c_str(), H5P_DEFAULT), H5Dclose);
  const Hdf5Handle type(H5Dget_type(dataset.get()), H5Tclose);
  const Hdf5Handle memory(H5Tcopy(type.get()), H5Tclose);
  const H5T_class_t kind = H5Tget_class(memory.get());
  if ((kind == H5T_FLOAT || kind == H5T_INTEGER) && H5Tset_order(memory.get(), H5T_ORDER_LE) < 0)
    return Hdf5Error(StrCat(found.path, " cannot be read"));
  std::vector<char> values(found.bytes);
  if (H5Dread(dataset.get(), memory.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    return Hdf5Error(StrCat(found.path, " cannot be read"));
  return output.Append({values.data(), values.size()});
}

// Copies the file into memory, and opens the copy.
Hdf5Handle OpenCopy(int descriptor, size_t size) {
  const Hdf5Handle in_memory(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(in_memory.get(), 1 << 20, false);
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (bytes == MAP_FAILED) return {H5I_INVALID_HID, H5Fclose};
  H5Pset_file_image(in_memory.get(), bytes, size);
  munmap(bytes, size);
  return {H5Fopen("input", H5F_ACC_RDONLY, in_memory.get()), H5Fclose};
}

// Opens the file by its path, which the library requires. If the file has no path, like a memfd,
// opens a copy in memory.
Hdf5Handle OpenFile(int descriptor, size_t size) {
  const std::string link = StrCat("/proc/self/fd/", descriptor);
  std::error_code failed;
  const std::string path = std::filesystem::canonical(link, failed);
  if (failed) return OpenCopy(descriptor, size);
  return {H5Fopen(link.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
}

}  // namespace

Status ConvertHdf5(int descriptor, OutputFile& output, absl::FunctionRef<void()> opened) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  struct stat info{};
  if (fstat(descriptor, &info) != 0) return ErrnoStatus(errno, "fstat");
  const auto size = static_cast<size_t>(info.st_size);
  const Hdf5Handle file = OpenFile(descriptor, size);
  if (!file.ok()) return Hdf5Error("not an HDF5 file, or cut off");
  opened();
  Contents contents;
  if (__builtin_mul_overflow(size, kMaxExpansion, &contents.most_bytes))
    contents.most_bytes = UINT64_MAX;
  contents.most_bytes = std::max(contents.most_bytes, kFreeBytes);
  const Hdf5Handle root(H5Gopen2(file.get(), "/", H5P_DEFAULT), H5Gclose);
  if (!root.ok()) return Hdf5Error("the file has no root");
  RETURN_IF_ERROR(Walk(root.get(), "", 0, contents));
  RETURN_IF_ERROR(output.Append(Header(contents)));
  for (const Dataset& dataset : contents.datasets)
    RETURN_IF_ERROR(CopyDataset(file.get(), dataset, output));
  return OkStatus();
}

}  // namespace tfjob::io
