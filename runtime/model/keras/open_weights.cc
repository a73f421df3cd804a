#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/object_graph.h"
#include "runtime/io/safetensors.h"
#include "runtime/model/keras/archive.h"
#include "runtime/model/keras/hdf5_weights.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/model/keras/object_names.h"
#include "runtime/model/keras/weights.h"

namespace tfjob::keras {
namespace {

StatusOr<Weights> OpenSafetensors(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<io::SafetensorsReader> reader,
                   io::SafetensorsReader::Open(path));
  const std::shared_ptr<const io::SafetensorsReader> shared = std::move(reader);
  Weights weights{.file = path};
  for (const auto& [name, entry] : shared->entries())
    weights.entries[name] = {entry.dtype, entry.shape};
  weights.read = [shared](const std::string& name) { return shared->Read(name); };
  weights.open = [shared](const std::string& name) -> StatusOr<PieceReader> {
    return PieceReader([shared, name](int64_t offset, std::span<std::byte> to) {
      return shared->ReadPiece(name, offset, to);
    });
  };
  return weights;
}

StatusOr<Weights> OpenCheckpoint(const std::string& prefix, const model::Model& model,
                                 std::span<const model::VariableSpec> variables) {
  ASSIGN_OR_RETURN(std::unique_ptr<io::BundleReader> reader, io::BundleReader::Open(prefix));
  const std::shared_ptr<const io::BundleReader> shared = std::move(reader);
  Weights weights{.file = StrCat("checkpoint ", prefix), .contains_others = true};
  for (const auto& [name, entry] : shared->entries()) {
    weights.entries[name] = {DTypeFromTensorFlow(entry.tensorflow_dtype), entry.shape};
  }
  std::map<std::string, std::string> renamed;
  if (io::IsObjectBased(*shared)) {
    const auto saved = io::ObjectVariables(*shared);
    RETURN_IF_ERROR(Annotate(saved.status(), weights.file));
    renamed = MatchObjectNames(model, variables, *saved);
    // Look up names in a copy, because the name of a variable may also be the name of another
    // variable's tensor.
    const std::map<std::string, StoredTensor> tensors = weights.entries;
    for (const auto& [name, tensor] : renamed) weights.entries[name] = tensors.at(tensor);
  }
  const auto tensor_of = [renamed = std::move(renamed)](const std::string& name) {
    const auto tensor = renamed.find(name);
    return tensor == renamed.end() ? name : tensor->second;
  };
  weights.read = [shared, tensor_of](const std::string& name) {
    return shared->Read(tensor_of(name));
  };
  weights.open = [shared, tensor_of](const std::string& name) -> StatusOr<PieceReader> {
    ASSIGN_OR_RETURN(io::StoredTensor stored, shared->Store(tensor_of(name)));
    return PieceReader([stored = std::move(stored)](int64_t offset, std::span<std::byte> to) {
      return stored.Read(offset, to);
    });
  };
  return weights;
}

StatusOr<Weights> OpenFolder(const std::string& folder, const model::Model& model,
                             std::span<const model::VariableSpec> variables) {
  ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> latest, io::LatestCheckpoint(folder));
  if (!latest) return NotFound(folder, " has no checkpoint (no file named checkpoint)");
  return OpenCheckpoint(latest->prefix, model, variables);
}

}  // namespace

StatusOr<Weights> OpenWeights(const std::string& path, const model::Model& model,
                              std::span<const model::VariableSpec> variables) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return OpenCheckpoint(path, model, variables);
  if (S_ISDIR(info.st_mode)) return OpenFolder(path, model, variables);
  ASSIGN_OR_RETURN(const FileFormat format, FormatOf(path));
  switch (format) {
    case FileFormat::kSafetensors:
      return OpenSafetensors(path);
    case FileFormat::kArchive: {
      ASSIGN_OR_RETURN(std::shared_ptr<const io::Hdf5File> file, ReadArchiveWeights(path));
      return WeightsOf(std::move(file), model, variables);
    }
    case FileFormat::kHdf5: {
      ASSIGN_OR_RETURN(std::shared_ptr<const io::Hdf5File> file, io::Hdf5File::Open(path));
      return WeightsOf(std::move(file), model, variables);
    }
    case FileFormat::kOther:
      RETURN_IF_ERROR(CheckSuffix(path));
      break;
    case FileFormat::kJson:
      break;
  }
  return InvalidArgument(path,
                         " holds no weights; expected safetensors, a .keras or .h5 file, the ",
                         "prefix of a checkpoint (model.ckpt-100), or a folder with checkpoints");
}

}  // namespace tfjob::keras
