#include "runtime/api/dataset.h"

#include <algorithm>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/base/file.h"

namespace tfjob::api {
namespace {

using NamedArrays = std::map<std::string, Tensor>;

// Adds the arrays of one role, and assigns them to the names of inputs or outputs. `only` is the
// array without a name.
void AddArrays(const std::string& role, const Tensor& only, const NamedArrays& named,
               std::map<std::string, std::string>& assigned, DatasetData& data) {
  if (only.present()) {
    assigned[""] = role;
    data.arrays[role] = Access::Data(only);
  }
  for (const auto& [name, array] : named) {
    const std::string key = StrCat(role, "/", name);
    assigned[name] = key;
    if (array.present()) data.arrays[key] = Access::Data(array);
  }
  if (only.present() && !named.empty() && data.error.ok()) {
    data.error = InvalidArgument("the arrays have both ", role, " and arrays with names (",
                                 named.begin()->first, "); give one of the two");
  }
}

config::FeatureConfig ConfigOfFeature(const data::Feature& feature) {
  config::FeatureConfig config{.dtype = feature.dtype,
                               .shape = feature.shape,
                               .max_length = std::nullopt,
                               .default_value = std::nullopt,
                               .decode_raw = feature.decode_raw};
  if (feature.max_length != 0) {
    config.max_length = feature.max_length;
    config.shape.reset();
    config.default_value = feature.default_value;
  }
  return config;
}

// Returns one of the datasets of FashionMnist. Checks that its files exist.
StatusOr<Dataset> ImagesAndClasses(const std::string& folder, const std::string& prefix) {
  data::Idx idx{.images = StrCat(folder, "/", prefix, "-images-idx3-ubyte.gz"),
                .labels = StrCat(folder, "/", prefix, "-labels-idx1-ubyte.gz"),
                .scale = 1.0 / 255};
  const std::string names = StrCat(prefix, "-images-idx3-ubyte.gz");
  ASSIGN_OR_RETURN(const std::vector<std::string> entries, ListDirectory(folder));
  for (const std::string* path : {&idx.images, &idx.labels}) {
    const std::string name = path->substr(folder.size() + 1);
    if (std::find(entries.begin(), entries.end(), name) == entries.end()) {
      return NotFound(*path, ": no such file; expected the files of Debian's package ",
                      "dataset-fashion-mnist, such as ", names);
    }
  }
  return Dataset(idx);
}

StatusOr<data::TrainAndTest> BothSets(const std::string& folder) {
  data::TrainAndTest both;
  ASSIGN_OR_RETURN(both.train, ImagesAndClasses(folder, "train"));
  ASSIGN_OR_RETURN(both.test, ImagesAndClasses(folder, "t10k"));
  return both;
}

}  // namespace

Dataset Access::MakeDataset(DatasetData data) {
  return Dataset(std::make_shared<const DatasetData>(std::move(data)));
}

Dataset::Dataset() : data_(std::make_shared<const DatasetData>()) {}

namespace data {

Arrays::operator Dataset() const {
  DatasetData made;
  made.source.scale = scale;
  AddArrays("x", x, inputs, made.source.inputs, made);
  AddArrays("y", y, targets, made.source.targets, made);
  AddArrays("sample_weight", sample_weight, sample_weights, made.source.sample_weights, made);
  return Access::MakeDataset(std::move(made));
}

Idx::operator Dataset() const {
  DatasetData made;
  made.source.format = config::DataFormat::kIdx;
  made.source.images = images;
  made.source.labels = labels;
  made.source.scale = scale;
  return Access::MakeDataset(std::move(made));
}

Csv::operator Dataset() const {
  DatasetData made;
  made.source.format = config::DataFormat::kCsv;
  made.source.file = file;
  made.source.header = header;
  made.source.label_column = label_column;
  made.source.delimiter = std::string(1, delimiter);
  made.source.scale = scale;
  return Access::MakeDataset(std::move(made));
}

Npz::operator Dataset() const {
  DatasetData made;
  made.source.format = config::DataFormat::kNpz;
  made.source.file = file;
  made.source.inputs = inputs;
  made.source.targets = targets;
  made.source.sample_weights = sample_weights;
  made.source.scale = scale;
  return Access::MakeDataset(std::move(made));
}

TfRecord::operator Dataset() const {
  DatasetData made;
  made.source.format = config::DataFormat::kTfRecord;
  made.source.files = files;
  for (const auto& [name, feature] : features)
    made.source.features[name] = ConfigOfFeature(feature);
  made.source.inputs = inputs;
  made.source.targets = targets;
  made.source.sample_weights = sample_weights;
  made.source.on_damaged = skip_damaged ? config::OnDamaged::kSkip : config::OnDamaged::kFail;
  made.source.cache_dir = cache_dir;
  made.source.scale = scale;
  return Access::MakeDataset(std::move(made));
}

Result<TrainAndTest> FashionMnist(const std::string& folder) {
  return ToPublic(BothSets(folder));
}

}  // namespace data
}  // namespace tfjob::api
