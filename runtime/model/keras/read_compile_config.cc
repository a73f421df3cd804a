// Implements ReadCompileConfig.
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/io/hdf5_file.h"
#include "runtime/model/keras/archive.h"
#include "runtime/model/keras/compile_config.h"
#include "runtime/model/keras/model_file.h"

namespace tfjob::keras {
namespace {

// Adds the version of Keras, because the form of the settings depends on it.
std::optional<Json> WithVersion(Json compiled, const StatusOr<std::string>& version) {
  if (version.ok()) compiled["keras_version"] = *version;
  return compiled;
}

StatusOr<std::optional<Json>> CompiledArchive(const std::string& path) {
  ASSIGN_OR_RETURN(const Json config, ReadArchiveConfig(path));
  const JsonField root(config);
  const JsonField compiled = root["compile_config"];
  if (!compiled["optimizer"].present()) return std::nullopt;
  return WithVersion(*compiled.value(), root["keras_version"].String());
}

StatusOr<std::optional<Json>> CompiledHdf5(const std::string& path) {
  ASSIGN_OR_RETURN(const auto file, io::Hdf5File::Open(path));
  const StatusOr<std::string> text = file->Text("", "training_config");
  if (!text.ok()) return std::nullopt;
  ASSIGN_OR_RETURN(Json config, ParseJson(*text, StrCat(path, ": training_config")));
  const JsonField optimizer = JsonField(config)["optimizer_config"];
  if (!optimizer.present()) return std::nullopt;
  Json compiled = config;
  compiled["optimizer"] = *optimizer.value();
  return WithVersion(std::move(compiled), file->Text("", "keras_version"));
}

}  // namespace

StatusOr<std::optional<Json>> ReadCompileConfig(const std::string& path) {
  ASSIGN_OR_RETURN(const FileFormat format, FormatOf(path));
  if (format == FileFormat::kArchive) return CompiledArchive(path);
  if (format == FileFormat::kHdf5) return CompiledHdf5(path);
  return std::nullopt;
}

}  // namespace tfjob::keras
