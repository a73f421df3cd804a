#include "runtime/io/hdf5/write.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/io/hdf5/handle.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::io {
namespace {

hid_t FileType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return H5T_IEEE_F32LE;
    case DType::kFloat64:
      return H5T_IEEE_F64LE;
    case DType::kInt32:
      return H5T_STD_I32LE;
    case DType::kInt64:
      return H5T_STD_I64LE;
    case DType::kUInt8:
    case DType::kBool:
      return H5T_STD_U8LE;
    case DType::kBFloat16:  // the reader of safetensors converts these to float32
    case DType::kFloat16:
      break;
  }
  return H5T_STD_U8LE;
}

Hdf5Handle SpaceOf(const std::vector<hsize_t>& dims) {
  if (dims.empty()) return {H5Screate(H5S_SCALAR), H5Sclose};
  return {H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose};
}

Status AddDataset(hid_t file, hid_t with_groups, const std::string& path, const Tensor& tensor) {
  const hid_t type = FileType(tensor.dtype());
  const Hdf5Handle space = SpaceOf({tensor.shape().dims().begin(), tensor.shape().dims().end()});
  const Hdf5Handle properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(properties.get(), false);  // so that equal tensors yield equal files
  const Hdf5Handle dataset(
      H5Dcreate2(file, path.c_str(), type, space.get(), with_groups, properties.get(), H5P_DEFAULT),
      H5Dclose);
  if (!dataset.ok()) return Hdf5Error(StrCat(path, " cannot be written"));
  if (tensor.num_bytes() == 0) return OkStatus();
  if (H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.bytes().data()) < 0)
    return Hdf5Error(StrCat(path, " cannot be written"));
  return OkStatus();
}

// Adds an attribute to an object. `value` must be a string or a list of strings.
Status AddAttribute(hid_t object, const std::string& name, const Json& value) {
  std::vector<std::string> texts;
  if (value.is_string())
    texts = {value.get<std::string>()};
  else
    texts = value.get<std::vector<std::string>>();
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const Hdf5Handle space =
      SpaceOf(value.is_string() ? std::vector<hsize_t>() : std::vector<hsize_t>{texts.size()});
  const Hdf5Handle attribute(
      H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
      H5Aclose);
  if (!attribute.ok()) return Hdf5Error(StrCat("the attribute ", name, " cannot be written"));
  if (pointers.empty()) return OkStatus();
  if (H5Awrite(attribute.get(), type.get(), pointers.data()) < 0)
    return Hdf5Error(StrCat("the attribute ", name, " cannot be written"));
  return OkStatus();
}

// Returns whether the object at this path and all of its parents exist.
bool Exists(hid_t file, const std::string& path) {
  for (size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
    if (H5Lexists(file, path.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
    if (slash == std::string::npos) return true;
  }
}

Status AddAttributes(hid_t file, hid_t with_groups, const std::string& path,
                     const Json& attributes) {
  if (!path.empty() && !Exists(file, path)) {
    const Hdf5Handle group(H5Gcreate2(file, path.c_str(), with_groups, H5P_DEFAULT, H5P_DEFAULT),
                           H5Gclose);
    if (!group.ok()) return Hdf5Error(StrCat("the group ", path, "/ cannot be written"));
  }
  const Hdf5Handle object(H5Oopen(file, path.empty() ? "/" : path.c_str(), H5P_DEFAULT), H5Oclose);
  if (!object.ok()) return Hdf5Error(StrCat(path, " cannot be written"));
  for (const auto& [name, value] : attributes.items())
    RETURN_IF_ERROR(AddAttribute(object.get(), name, value));
  return OkStatus();
}

Status AddAll(const SafetensorsReader& tensors, hid_t file) {
  const Hdf5Handle with_groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(with_groups.get(), 1);
  for (const auto& [name, entry] : tensors.entries()) {
    ASSIGN_OR_RETURN(const Tensor tensor, tensors.Read(name));
    RETURN_IF_ERROR(AddDataset(file, with_groups.get(), name, tensor));
  }
  const auto text = tensors.metadata().find("attributes");
  if (text == tensors.metadata().end()) return OkStatus();
  ASSIGN_OR_RETURN(const Json attributes, ParseJson(text->second, "the attributes"));
  for (const auto& [object, values] : attributes.items())
    RETURN_IF_ERROR(AddAttributes(file, with_groups.get(), object, values));
  return OkStatus();
}

}  // namespace

Status WriteHdf5(const SafetensorsReader& tensors, OutputFile& output) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  // Let the library write the file into memory, because it cannot open the output by path.
  const Hdf5Handle in_memory(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(in_memory.get(), 1 << 20, false);
  const Hdf5Handle file(H5Fcreate("output", H5F_ACC_TRUNC, H5P_DEFAULT, in_memory.get()), H5Fclose);
  if (!file.ok()) return Hdf5Error("the file cannot be created");
  RETURN_IF_ERROR(AddAll(tensors, file.get()));
  if (H5Fflush(file.get(), H5F_SCOPE_GLOBAL) < 0) return Hdf5Error("the file cannot be written");
  const ssize_t size = H5Fget_file_image(file.get(), nullptr, 0);
  if (size < 0) return Hdf5Error("the file cannot be written");
  std::vector<char> image(static_cast<size_t>(size));
  if (H5Fget_file_image(file.get(), image.data(), image.size()) != size)
    return Hdf5Error("the file cannot be written");
  return output.Append({image.data(), image.size()});
}

}  // namespace tfjob::io
