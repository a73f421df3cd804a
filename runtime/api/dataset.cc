#include "runtime/api/dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/api/access.h"
#include "runtime/base/file.h"

namespace tfjob::api {
namespace {

using NamedArrays = std::map<std::string, Tensor>;

// Adds the arrays of one role (inputs, targets or sample weights), and maps each input or output to
// its array. `only` is the array without a name.
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

// The functions below return keys of a training file. The reader of training files checks the
// values.

Json KeysOfTokenize(const data::Tokenize& tokenize) {
  Json keys = {{"name", tokenize.name},
               {"max_length", tokenize.max_length},
               {"truncate", tokenize.truncate}};
  if (!tokenize.vocabulary.empty()) keys["vocabulary"] = tokenize.vocabulary;
  if (!tokenize.merges.empty()) keys["merges"] = tokenize.merges;
  if (!tokenize.file.empty()) keys["file"] = tokenize.file;
  if (tokenize.add_special_tokens) keys["add_special_tokens"] = *tokenize.add_special_tokens;
  if (tokenize.lower_case) keys["lower_case"] = *tokenize.lower_case;
  if (tokenize.strip_accents) keys["strip_accents"] = *tokenize.strip_accents;
  return keys;
}

// Adds the keys that determine how a string is converted.
void AddStringKeys(const data::Feature& feature, Json& keys) {
  if (!feature.decode_raw.empty()) keys["decode_raw"] = feature.decode_raw;
  if (feature.decode_image) keys["decode_image"] = true;
  if (!feature.resize.empty()) keys["resize"] = feature.resize;
  if (feature.crop_to_aspect_ratio) keys["crop_to_aspect_ratio"] = true;
  if (feature.tokenize) keys["tokenize"] = KeysOfTokenize(*feature.tokenize);
  if (!feature.terms.empty()) keys["vocabulary"] = feature.terms;
  if (!feature.vocabulary.empty()) keys["vocabulary"] = feature.vocabulary;
  if (feature.num_oov_indices) keys["num_oov_indices"] = *feature.num_oov_indices;
  if (!feature.columns.empty()) keys["columns"] = feature.columns;
}

Json KeysOfFeature(const data::Feature& feature) {
  Json keys = {{"dtype", feature.dtype}};
  const bool variable = feature.max_length != 0;
  if (variable || feature.sequence) keys["max_length"] = feature.max_length;
  const bool steps = feature.sequence || !feature.shape.empty();
  const bool implied = feature.tokenize || !feature.columns.empty();
  if ((steps || !variable) && !(implied && feature.shape.empty())) keys["shape"] = feature.shape;
  const bool padded = variable && !steps && feature.dtype != "string";
  if (feature.default_value || padded) keys["default_value"] = feature.default_value.value_or(0);
  AddStringKeys(feature, keys);
  return keys;
}

using NameMap = std::map<std::string, std::string>;

void AddNames(const NameMap& inputs, const NameMap& targets, const NameMap& sample_weights,
              Json& keys) {
  const auto add = [&keys](const char* key, const NameMap& names) {
    if (names.empty()) return;
    const bool only = names.size() == 1 && names.begin()->first.empty();
    keys[key] = only ? Json(names.begin()->second) : Json(names);
  };
  add("inputs", inputs);
  add("targets", targets);
  add("sample_weights", sample_weights);
}

Dataset FromKeys(Json keys, tfjob::Status error = OkStatus()) {
  DatasetData made;
  made.keys = std::move(keys);
  made.error = std::move(error);
  return Access::MakeDataset(std::move(made));
}

// Adds the features. Returns an error if the keys cannot express one of the features.
tfjob::Status AddFeatures(const std::map<std::string, data::Feature>& features, Json& keys) {
  keys["features"] = Json::object();
  for (const auto& [name, feature] : features) {
    keys["features"][name] = KeysOfFeature(feature);
    if (feature.terms.empty() || feature.vocabulary.empty()) continue;
    return InvalidArgument("feature ", name, ": expected either terms or a vocabulary, got both");
  }
  return OkStatus();
}

// Returns the dataset for TfRecord or JsonLines.
template <typename Records>
Dataset FromRecords(const char* format, const Records& records) {
  Json keys = {{"format", format},
               {"files", records.files},
               {"on_damaged", records.skip_damaged ? "skip" : "fail"},
               {"cache_dir", records.cache_dir},
               {"scale", records.scale}};
  tfjob::Status error = AddFeatures(records.features, keys);
  AddNames(records.inputs, records.targets, records.sample_weights, keys);
  return FromKeys(std::move(keys), std::move(error));
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
  if (!std::isfinite(scale))
    made.error = InvalidArgument("scale: expected a finite number, got ", scale);
  AddArrays("x", x, inputs, made.source.inputs, made);
  AddArrays("y", y, targets, made.source.targets, made);
  AddArrays("sample_weight", sample_weight, sample_weights, made.source.sample_weights, made);
  return Access::MakeDataset(std::move(made));
}

Idx::operator Dataset() const {
  return FromKeys({{"format", "idx"}, {"images", images}, {"labels", labels}, {"scale", scale}});
}

Csv::operator Dataset() const {
  Json keys = {{"format", "csv"},
               {"file", file},
               {"header", header},
               {"label_column", label_column},
               {"delimiter", std::string(1, delimiter)},
               {"scale", scale}};
  tfjob::Status error = AddFeatures(features, keys);
  AddNames(inputs, targets, sample_weights, keys);
  return FromKeys(std::move(keys), std::move(error));
}

Npz::operator Dataset() const {
  Json keys = {{"format", "npz"}, {"file", file}, {"scale", scale}};
  AddNames(inputs, targets, sample_weights, keys);
  return FromKeys(std::move(keys));
}

TfRecord::operator Dataset() const {
  return FromRecords("tfrecord", *this);
}

JsonLines::operator Dataset() const {
  return FromRecords("jsonl", *this);
}

Images::operator Dataset() const {
  return FromKeys({{"format", "images"},
                   {"folder", folder},
                   {"classes", classes},
                   {"height", height},
                   {"width", width},
                   {"channels", channels},
                   {"resize", resize},
                   {"crop_to_aspect_ratio", crop_to_aspect_ratio},
                   {"on_damaged", skip_damaged ? "skip" : "fail"},
                   {"scale", scale}});
}

Text::operator Dataset() const {
  return FromKeys({{"format", "text"},
                   {"files", files},
                   {"tokenize", KeysOfTokenize(tokenize)},
                   {"targets", same_token ? "same_token" : "next_token"},
                   {"on_damaged", skip_damaged ? "skip" : "fail"},
                   {"cache_dir", cache_dir}});
}

Texts::operator Dataset() const {
  return FromKeys({{"format", "texts"},
                   {"folder", folder},
                   {"classes", classes},
                   {"tokenize", KeysOfTokenize(tokenize)},
                   {"on_damaged", skip_damaged ? "skip" : "fail"}});
}

Result<TrainAndTest> FashionMnist(const std::string& folder) {
  return ToPublic(BothSets(folder));
}

}  // namespace data
}  // namespace tfjob::api
