#include "runtime/train/job/load_format.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/env.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/philox.h"
#include "runtime/data/csv/csv_table.h"
#include "runtime/data/folders/class_files.h"
#include "runtime/data/images/image_source.h"
#include "runtime/data/jsonl/jsonl.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/table_source.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "runtime/model/any_length.h"
#include "runtime/model/build.h"
#include "runtime/train/job/text_data.h"

namespace tfjob::train {
namespace {

using config::SourceConfig;

StatusOr<data::Dataset> LoadArchive(const SourceConfig& source, Split split,
                                    const model::Model& model, Extent extent) {
  data::NpzOptions options{.file = source.file};
  ASSIGN_OR_RETURN(options.arrays, NamedSources(source, split, model, extent));
  return data::LoadNpz(options);
}

data::ImageOptions ToImage(int64_t height, int64_t width, int64_t channels,
                           config::ResizeMethod method, bool crop) {
  const bool nearest = method == config::ResizeMethod::kNearest;
  return {.channels = channels,
          .resize = {.height = height,
                     .width = width,
                     .method = nearest ? data::Resize::kNearest : data::Resize::kBilinear,
                     .crop_to_aspect_ratio = crop}};
}

int DecodeThreads(const config::TrainingConfig& config) {
  return config.data.threads > 0 ? static_cast<int>(config.data.threads) : AvailableProcessors();
}

// Returns the shape of a feature, or of a step of a sequence.
std::vector<int64_t> ShapeOf(const config::FeatureConfig& feature) {
  if (feature.shape) return *feature.shape;
  if (feature.columns.empty()) return {};
  return {static_cast<int64_t>(feature.columns.size())};
}

// Returns the description of a feature whose strings are converted to ids. `at` is the path of the
// feature.
StatusOr<data::ExampleFeature> ToIds(const std::string& name, const config::FeatureConfig& feature,
                                     const std::string& at) {
  data::ExampleFeature ids{.name = name, .dtype = DType::kInt64};
  if (feature.tokenize) {
    ASSIGN_OR_RETURN(ids.tokens,
                     ReadTokenizer(*feature.tokenize, feature.default_value, at + ".tokenize"));
    ids.shape = {feature.tokenize->max_length};
    return ids;
  }
  ASSIGN_OR_RETURN(ids.vocabulary, ReadVocabulary(feature, at));
  ids.shape = feature.max_length ? Shape({*feature.max_length}) : Shape(ShapeOf(feature));
  ids.variable = feature.max_length.has_value();
  ids.fill = feature.default_value;
  return ids;
}

StatusOr<data::ExampleFeature> ToFeature(const std::string& name,
                                         const config::FeatureConfig& feature,
                                         const std::string& at) {
  if (feature.tokenize || !feature.terms.empty() || !feature.vocabulary.empty())
    return ToIds(name, feature, at);
  std::vector<int64_t> shape = ShapeOf(feature);
  if (feature.decode_image) {
    return data::ExampleFeature{
        .name = name,
        .shape = Shape(shape),
        .image = ToImage(shape[0], shape[1], shape[2],
                         feature.resize.value_or(config::ResizeMethod::kBilinear),
                         feature.crop_to_aspect_ratio.value_or(false))};
  }
  const bool raw = feature.dtype == "string";
  if (feature.max_length) shape.insert(shape.begin(), *feature.max_length);
  return data::ExampleFeature{.name = name,
                              .dtype = *ParseDType(raw ? feature.decode_raw : feature.dtype),
                              .raw = raw,
                              .shape = Shape(std::move(shape)),
                              .variable = feature.max_length.has_value(),
                              .sequence = feature.max_length && feature.shape,
                              .fill = feature.default_value};
}

// Sets the features in `options` from the training file, and the fields that use these features.
Status AddFeatures(const config::TrainingConfig& config, Split split, const model::Model& model,
                   Extent extent, data::RecordOptions& options) {
  const SourceConfig& source = SourceOf(config, split);
  std::vector<std::string> names;
  for (const auto& [name, feature] : source.features) {
    names.push_back(name);
    ASSIGN_OR_RETURN(options.features.emplace_back(),
                     ToFeature(name, feature, StrCat(KeyOf(split), ".features.", name)));
    if (feature.decode_image || feature.tokenize) options.threads = DecodeThreads(config);
  }
  ASSIGN_OR_RETURN(const auto used, NamedSources(source, split, model, extent));
  for (const data::NpzOptions::Source& use : used) {
    if (!source.features.contains(use.array)) {
      return InvalidArgument(KeyOf(split), ".features: expected the feature ", use.array,
                             ", which the model's ", use.name, " needs, but it is missing",
                             DidYouMean(use.array, names));
    }
    options.fields.push_back({use.name, use.array});
  }
  for (const std::string& name : names) {
    if (std::ranges::find(used, name, &data::NpzOptions::Source::array) != used.end()) continue;
    return InvalidArgument(KeyOf(split), ".features.", name, ": no input, target or sample weight ",
                           "uses this feature; remove it, or name it in inputs, targets or "
                           "sample_weights");
  }
  return OkStatus();
}

StatusOr<std::shared_ptr<const data::Source>> OpenRecords(const config::TrainingConfig& config,
                                                          Split split, const model::Model& model,
                                                          Extent extent) {
  const SourceConfig& source = SourceOf(config, split);
  data::RecordOptions options{.files = source.files,
                              .skip_damaged = source.on_damaged == config::OnDamaged::kSkip,
                              .cache_dir = source.cache_dir};
  RETURN_IF_ERROR(AddFeatures(config, split, model, extent, options));
  StatusOr<std::shared_ptr<const data::Source>> opened =
      source.format == config::DataFormat::kJsonLines ? data::OpenJsonLines(options)
                                                      : data::OpenTfRecords(options);
  return opened.ok() ? opened : Annotate(opened.status(), KeyOf(split));
}

// Returns a hash of all values. The values include ids, so two tasks have the same hash only if
// their vocabularies are equal, too.
uint64_t HashOf(const data::Dataset& dataset) {
  Fnv1a hash;
  for (const data::Array& array : dataset.arrays) {
    hash.Add(StrCat(array.name, array.values.shape().ToString()));
    const std::span<const std::byte> bytes = array.values.bytes();
    size_t i = 0;
    for (uint64_t word; i + sizeof(word) <= bytes.size(); i += sizeof(word)) {
      std::memcpy(&word, &bytes[i], sizeof(word));
      hash.AddWord(word);
    }
    for (; i < bytes.size(); ++i) hash.AddWord(std::to_integer<uint64_t>(bytes[i]));
  }
  return hash.hash();
}

// Loads a CSV file with features.
StatusOr<data::Dataset> LoadColumns(const config::TrainingConfig& config, Split split,
                                    const model::Model& model, Extent extent) {
  const SourceConfig& source = SourceOf(config, split);
  data::RecordOptions records;
  RETURN_IF_ERROR(AddFeatures(config, split, model, extent, records));
  data::CsvTableOptions options{
      .file = source.file, .delimiter = source.delimiter[0], .fields = std::move(records.fields)};
  for (data::ExampleFeature& feature : records.features) {
    std::vector<std::string> columns = source.features.at(feature.name).columns;
    if (columns.empty()) columns = {feature.name};
    options.features.push_back({std::move(feature), std::move(columns)});
  }
  StatusOr<data::Dataset> dataset = data::LoadCsvTable(options);
  return dataset.ok() ? std::move(dataset) : Annotate(dataset.status(), KeyOf(split));
}

StatusOr<std::shared_ptr<const data::Source>> OpenImages(const config::TrainingConfig& config,
                                                         Split split) {
  const SourceConfig& source = SourceOf(config, split);
  StatusOr<std::shared_ptr<const data::Source>> opened =
      data::OpenImages({.folder = source.folder,
                        .classes = source.classes,
                        .image = ToImage(source.height, source.width, source.channels,
                                         source.resize, source.crop_to_aspect_ratio),
                        .skip_damaged = source.on_damaged == config::OnDamaged::kSkip,
                        .threads = DecodeThreads(config)});
  return opened.ok() ? opened : Annotate(opened.status(), KeyOf(split));
}

// Returns the smallest and the largest number in an input or output.
StatusOr<std::pair<double, double>> RangeOf(const SourceConfig& source, Split split,
                                            const std::string& name, DType dtype) {
  const auto found = source.ranges.find(name);
  if (found != source.ranges.end()) return std::pair(found->second[0], found->second[1]);
  if (dtype == DType::kBool) return std::pair(0.0, 1.0);
  if (dtype == DType::kUInt8) return std::pair(0.0, 255.0);
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64)
    return std::pair(source.low, source.high);
  return InvalidArgument(KeyOf(split), ".ranges: expected a range for ", name, ", whose type is ",
                         tfjob::Name(dtype), ", such as {", name, ": [0, 99]}");
}

Status CheckRangeNames(const SourceConfig& source, const Role& inputs, const Role& outputs,
                       Split split) {
  std::vector<std::string> known = inputs.layers;
  known.insert(known.end(), outputs.layers.begin(), outputs.layers.end());
  for (const auto& [name, range] : source.ranges) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return InvalidArgument(KeyOf(split), ".ranges.", name,
                           ": the model has no such input or output", DidYouMean(name, known));
  }
  return OkStatus();
}

StatusOr<std::vector<graph::TensorType>> StatedTypes(const model::Model& model, Split split) {
  std::vector<graph::TensorType> types;
  for (const std::optional<graph::TensorType>& stated : model::StatedInputs(model)) {
    if (!stated) {
      return InvalidArgument(KeyOf(split),
                             ".format: synthetic data need the shapes of the model's ",
                             "inputs; begin model.layers with an InputLayer");
    }
    if (model::HasAnyLength(stated->shape)) {
      return InvalidArgument(KeyOf(split), ".format: synthetic data need the lengths of the ",
                             "model's inputs; replace null in its InputLayers by numbers");
    }
    types.push_back(*stated);
  }
  return types;
}

StatusOr<data::Dataset> DrawArrays(const config::TrainingConfig& config, Split split,
                                   const model::Model& model) {
  const SourceConfig& source = SourceOf(config, split);
  data::SyntheticOptions options{.examples = source.examples,
                                 .seed = static_cast<uint64_t>(config.seed)};
  if (split == Split::kEval) options.seed = PhiloxKey(options.seed, "evaluation data");
  const Role inputs = InputRole(model, split);
  const Role outputs = OutputRole(model, split, "targets", model::LabelsName, "");
  RETURN_IF_ERROR(CheckRangeNames(source, inputs, outputs, split));
  ASSIGN_OR_RETURN(const std::vector<graph::TensorType> in, StatedTypes(model, split));
  ASSIGN_OR_RETURN(const std::vector<graph::TensorType> out, model::OutputTypes(model, in));
  ASSIGN_OR_RETURN(const std::vector<config::TrainingConfig> configs, OutputConfigs(config, model));
  for (size_t i = 0; i < in.size(); ++i) {
    ASSIGN_OR_RETURN(const auto range, RangeOf(source, split, inputs.layers[i], in[i].dtype));
    options.arrays.push_back(
        {inputs.arrays[i], in[i].dtype, in[i].shape, range.first, range.second});
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const Shape& shape = out[i].shape;
    if (config::ResolvedLabels(configs[i]) == config::LabelKind::kValue || shape.rank() == 0) {
      ASSIGN_OR_RETURN(const auto range,
                       RangeOf(source, split, outputs.layers[i], DType::kFloat32));
      options.arrays.push_back(
          {outputs.arrays[i], DType::kFloat32, shape, range.first, range.second});
    } else {
      options.arrays.push_back({outputs.arrays[i], DType::kInt64, model::PlacesOf(shape), 0,
                                static_cast<double>(shape.dim(-1) - 1)});
    }
  }
  return data::MakeSynthetic(options);
}

// Returns the type for reading a CSV file of numbers. Integers must be read as float64 to be exact.
DType CsvType(const model::Model& model) {
  const std::optional<graph::TensorType> stated = model::StatedInputs(model)[0];
  return !stated || stated->dtype == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64;
}

StatusOr<data::Dataset> Load(const config::TrainingConfig& config, Split split,
                             const model::Model& model, Extent extent) {
  const SourceConfig& source = SourceOf(config, split);
  switch (source.format) {
    case config::DataFormat::kIdx:
      return data::LoadIdx({.images = source.images, .labels = source.labels});
    case config::DataFormat::kCsv:
      if (!source.features.empty()) return LoadColumns(config, split, model, extent);
      return data::LoadCsv({.file = source.file,
                            .header = source.header,
                            .label_column = source.label_column,
                            .delimiter = source.delimiter[0],
                            .features = CsvType(model)});
    case config::DataFormat::kNpz:
      return LoadArchive(source, split, model, extent);
    case config::DataFormat::kLinear:
      return data::MakeLinear({.weights = source.weights,
                               .bias = source.bias,
                               .noise = source.noise,
                               .low = source.low,
                               .high = source.high,
                               .examples = source.examples,
                               .seed = static_cast<uint64_t>(config.seed)});
    case config::DataFormat::kSynthetic:
      return DrawArrays(config, split, model);
    case config::DataFormat::kTfRecord:  // is opened, not loaded
    case config::DataFormat::kJsonLines:
    case config::DataFormat::kImages:
    case config::DataFormat::kText:
    case config::DataFormat::kTexts:
    case config::DataFormat::kConcatenate:  // are loaded dataset by dataset
    case config::DataFormat::kMix:
    case config::DataFormat::kInterleave:
    case config::DataFormat::kZip:
    case config::DataFormat::kNone:
      break;
  }
  return InvalidArgument("data: there is no source of this kind in the training file");
}

}  // namespace

StatusOr<std::shared_ptr<const data::Source>> LoadFormat(const config::TrainingConfig& config,
                                                         Split split, const model::Model& model,
                                                         Extent extent) {
  const config::DataFormat format = SourceOf(config, split).format;
  if (format == config::DataFormat::kTfRecord || format == config::DataFormat::kJsonLines)
    return OpenRecords(config, split, model, extent);
  if (format == config::DataFormat::kImages) return OpenImages(config, split);
  if (format == config::DataFormat::kText)
    return OpenText(config, split, model, DecodeThreads(config));
  if (format == config::DataFormat::kTexts) return OpenTexts(config, split, DecodeThreads(config));
  ASSIGN_OR_RETURN(data::Dataset dataset, Load(config, split, model, extent));
  const bool named = !SourceOf(config, split).features.empty();
  const uint64_t fingerprint = named ? HashOf(dataset) : 0;
  return data::TableSource(std::make_shared<const data::Dataset>(std::move(dataset)), fingerprint);
}

}  // namespace tfjob::train
