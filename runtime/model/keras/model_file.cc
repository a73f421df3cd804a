#include "runtime/model/keras/model_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/io/hdf5_file.h"
#include "runtime/io/safetensors.h"
#include "runtime/model/keras.h"
#include "runtime/model/keras/archive.h"

namespace tfjob::keras {
namespace {

StatusOr<model::Model> ReadHdf5Model(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, io::Hdf5File::Open(path));
  const StatusOr<std::string> config = file->Text("", "model_config");
  if (!config.ok()) {
    return InvalidArgument(path,
                           " has weights, but no model (no attribute model_config); give the ",
                           "model by its JSON, or save it as a whole");
  }
  ASSIGN_OR_RETURN(Json document, ParseJson(*config, StrCat(path, ": model_config")));
  const StatusOr<std::string> version = file->Text("", "keras_version");
  if (version.ok() && document.is_object()) document["keras_version"] = *version;
  return model::ReadKerasJson(PrintJson(document), path);
}

}  // namespace

StatusOr<FileFormat> FormatOf(const std::string& path) {
  ASSIGN_OR_RETURN(const io::RandomAccessFile file, io::RandomAccessFile::Open(path));
  std::array<char, 16> bytes = {};
  const size_t size = std::min<uint64_t>(file.size(), bytes.size());
  RETURN_IF_ERROR(file.Read(0, std::as_writable_bytes(std::span(bytes)).first(size)));
  const std::string_view beginning(bytes.data(), size);
  if (beginning.starts_with("PK")) return FileFormat::kArchive;
  if (io::LooksLikeHdf5(beginning)) return FileFormat::kHdf5;
  if (io::LooksLikeSafetensors(beginning)) return FileFormat::kSafetensors;
  const size_t text = beginning.find_first_not_of(" \t\r\n");
  if (text != std::string_view::npos && beginning[text] == '{') return FileFormat::kJson;
  return FileFormat::kOther;
}

Status CheckSuffix(const std::string& path) {
  if (path.ends_with(".keras")) {
    return InvalidArgument(path, " is not a .keras file: it is not a ZIP archive; save or ",
                           "download it again");
  }
  if (path.ends_with(".h5") || path.ends_with(".hdf5")) {
    return InvalidArgument(path, " is not an HDF5 file, although its name says so; save or ",
                           "download it again");
  }
  return OkStatus();
}

StatusOr<model::Model> ReadModelFile(const std::string& path) {
  ASSIGN_OR_RETURN(const FileFormat format, FormatOf(path));
  switch (format) {
    case FileFormat::kJson: {
      ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
      return model::ReadKerasJson(text, path);
    }
    case FileFormat::kArchive: {
      ASSIGN_OR_RETURN(const Json config, ReadArchiveConfig(path));
      return model::ReadKerasJson(PrintJson(config), path);
    }
    case FileFormat::kHdf5:
      return ReadHdf5Model(path);
    case FileFormat::kOther:
      RETURN_IF_ERROR(CheckSuffix(path));
      break;
    case FileFormat::kSafetensors:
      break;
  }
  return InvalidArgument(path, " holds no model; expected Keras' JSON (model.to_json()), a .keras ",
                         "file or a whole model in an .h5 file");
}

}  // namespace tfjob::keras
