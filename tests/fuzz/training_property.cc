#include "tests/fuzz/training_property.h"

#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/config/training_config.h"
#include "runtime/data/pipeline.h"
#include "runtime/model/keras.h"

namespace tfjob::fuzz {
namespace {

// A file in memory with certain bytes. The file has a path, so readers can open it.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("fuzz", 0)) {
    ENFORCE(file_ >= 0, "memfd_create");
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    ENFORCE(written == static_cast<ssize_t>(bytes.size()), "write");
  }
  ~MemoryFile() { close(file_); }
  std::string path() const { return StrCat("/proc/self/fd/", file_); }

 private:
  int file_;
};

void CheckModel(const model::Model& model) {
  std::vector<model::TensorType> features;
  for (const std::optional<model::TensorType>& stated : model::StatedInputs(model))
    features.push_back(stated.value_or(model::TensorType{DType::kFloat32, {4}}));
  (void)model::Summary(model, features);
  (void)model::Variables(model, features);
  const Json written = model::WriteKerasJson(model);
  const StatusOr<model::Model> again = model::ReadKerasJson(PrintJson(written), "written");
  ENFORCE(again.ok(), StrCat("a written model must read: ", Message(again.status())));
  ENFORCE(model::WriteKerasJson(*again) == written, "a written model must read as the same model");
}

void CheckData(StatusOr<data::Dataset> loaded) {
  if (!loaded.ok()) return;
  const auto dataset = std::make_shared<const data::Dataset>(*std::move(loaded));
  ENFORCE(dataset->size() > 0, "data has examples");
  data::PipelineOptions options{.batch_size = 3, .epochs = 1, .prefetch = 0};
  for (const data::Array& array : dataset->arrays) {
    ENFORCE(array.values.shape().dim(0) == dataset->size(), "as many labels as examples");
    options.columns.push_back(data::FloatColumn(*dataset, array.name));
  }
  const auto pipeline = data::Pipeline::Create(dataset, options);
  if (!pipeline.ok()) return;  // a number in a CSV file does not fit into float32
  int64_t seen = 0;
  while (const data::Batch* batch = (*pipeline)->Next()) seen += batch->size();
  ENFORCE(seen == dataset->size(), "every example comes once an epoch");
}

}  // namespace

void CheckTrainingFileProperties(std::string_view text) {
  const StatusOr<config::TrainingConfig> config = config::ParseTrainingConfig(text, "fuzz");
  if (!config.ok()) return;
  const bool valid = config::Validate(*config).ok();
  if (valid) {
    const StatusOr<config::TrainingConfig> again =
        config::ParseTrainingConfig(config::PrintTrainingConfig(*config), "printed");
    ENFORCE(again.ok(), StrCat("a printed config must read: ", Message(again.status())));
    ENFORCE(config::TrainingConfigToJson(*again) == config::TrainingConfigToJson(*config),
            "a printed config must read as the same config");
  }
  if (config->model.layers == nullptr) return;
  const StatusOr<model::Model> model =
      model::ReadLayers(JsonField(*config->model.layers, "model.layers"));
  if (model.ok()) CheckModel(*model);
}

void CheckKerasJsonProperties(std::string_view text) {
  const StatusOr<model::Model> model = model::ReadKerasJson(text, "fuzz");
  if (model.ok()) CheckModel(*model);
}

void CheckIdxProperties(std::string_view bytes) {
  // Reads the bytes as images, with three valid labels, and as labels, with three valid images.
  const MemoryFile file(bytes);
  const MemoryFile labels(std::string_view("\0\0\x08\x01\0\0\0\3\0\1\2", 11));
  const MemoryFile images(std::string_view("\0\0\x08\x02\0\0\0\3\0\0\0\1\7\x08\x09", 15));
  CheckData(data::LoadIdx({file.path(), labels.path()}));
  CheckData(data::LoadIdx({images.path(), file.path()}));
}

void CheckCsvProperties(std::string_view bytes) {
  const MemoryFile file(bytes);
  CheckData(data::LoadCsv({.file = file.path()}));
  CheckData(
      data::LoadCsv({.file = file.path(), .header = false, .label_column = "0", .delimiter = ';'}));
}

}  // namespace tfjob::fuzz
