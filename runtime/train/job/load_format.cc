#include "runtime/train/job/load_format.h"

#include <algorithm>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/env.h"
#include "runtime/base/philox.h"
#include "runtime/data/arrays/array_files.h"
#include "runtime/data/csv/csv_numbers.h"
#include "runtime/data/csv/csv_table.h"
#include "runtime/data/folders/class_files.h"
#include "runtime/data/images/image_source.h"
#include "runtime/data/jsonl/jsonl.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/table_source.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "runtime/model/any_length.h"
#include "runtime/model/build.h"
#include "runtime/model/custom_loss.h"
#include "runtime/train/job/loss_model.h"
#include "runtime/train/job/text_data.h"

namespace tfjob::train {
namespace {

using config::SourceConfig;

using SourcePtr = std::shared_ptr<const data::Source>;

data::StorageOptions StorageOf(const SourceConfig& source) {
  return {.cache_dir = source.cache_dir};
}

StatusOr<SourcePtr> OpenArchive(const SourceConfig& source, Split split, const model::Model& model,
                                Extent extent) {
  data::NpzOptions options{.file = source.file};
  ASSIGN_OR_RETURN(options.arrays, NamedSources(source, split, model, extent));
  return data::OpenNpz(options, StorageOf(source));
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
  ASSIGN_OR_RETURN(const auto used, NamedSources(source, split, model, extent));
  for (const data::NpzOptions::Source& use : used) {
    if (!source.features.contains(use.array)) {
      if (use.optional) continue;
      std::vector<std::string> names;
      for (const auto& [name, feature] : source.features) names.push_back(name);
      return InvalidArgument(KeyOf(split), ".features: expected the feature ", use.array,
                             ", which the model's ", use.name, " needs, but it is missing",
                             DidYouMean(use.array, names));
    }
    options.fields.push_back({use.name, use.array});
  }
  const bool all_used = extent != Extent::kInputs && extent != Extent::kInputsAndPresent;
  for (const auto& [name, feature] : source.features) {
    const bool is_used =
        std::ranges::find(used, name, &data::NpzOptions::Source::array) != used.end();
    if (!is_used && !all_used) continue;  // for example, the feature of the labels
    if (!is_used) {
      return InvalidArgument(KeyOf(split), ".features.", name, ": no input, target or sample ",
                             "weight uses this feature; remove it, or name it in inputs, targets ",
                             "or sample_weights");
    }
    ASSIGN_OR_RETURN(options.features.emplace_back(),
                     ToFeature(name, feature, StrCat(KeyOf(split), ".features.", name)));
    if (feature.decode_image || feature.tokenize) options.threads = DecodeThreads(config);
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

// Opens a CSV file with features.
StatusOr<SourcePtr> OpenColumns(const config::TrainingConfig& config, Split split,
                                const model::Model& model, Extent extent) {
  const SourceConfig& source = SourceOf(config, split);
  data::RecordOptions records;
  RETURN_IF_ERROR(AddFeatures(config, split, model, extent, records));
  data::CsvTableOptions options{.file = source.file,
                                .delimiter = source.delimiter[0],
                                .fields = std::move(records.fields),
                                .storage = StorageOf(source),
                                .threads = records.threads};
  for (data::ExampleFeature& feature : records.features) {
    std::vector<std::string> columns = source.features.at(feature.name).columns;
    if (columns.empty()) columns = {feature.name};
    options.features.push_back({std::move(feature), std::move(columns)});
  }
  StatusOr<SourcePtr> opened = data::OpenCsvTable(options);
  return opened.ok() ? std::move(opened) : Annotate(opened.status(), KeyOf(split));
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

// Returns the type of one example of the labels that a model of a custom loss takes, for an output
// of this shape.
StatusOr<graph::TensorType> LabelsOfLossModel(const config::LossConfig& config, Split split,
                                              const Shape& output) {
  ASSIGN_OR_RETURN(const auto loss, ReadLossModel(config));
  const graph::TensorType stated = *model::StatedInputs(*loss)[0];
  if (!model::HasAnyLength(stated.shape)) return stated;
  for (const Shape& shape : {output, model::PlacesOf(output)}) {
    const graph::TensorType labels = model::LabelsOf(*loss, shape);
    if (model::FitsStated(stated.shape, labels.shape)) return labels;
  }
  return InvalidArgument(KeyOf(split), ".format: synthetic data need the lengths of the labels; ",
                         "replace null in the first input of loss.model by numbers");
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
    if (IsCustom(configs[i].loss)) {
      ASSIGN_OR_RETURN(const graph::TensorType labels,
                       LabelsOfLossModel(configs[i].loss, split, shape));
      ASSIGN_OR_RETURN(const auto range, RangeOf(source, split, outputs.layers[i], labels.dtype));
      options.arrays.push_back(
          {outputs.arrays[i], labels.dtype, labels.shape, range.first, range.second});
    } else if (config::ResolvedLabels(configs[i]) == config::LabelKind::kValue ||
               shape.rank() == 0) {
      ASSIGN_OR_RETURN(const auto range,
                       RangeOf(source, split, outputs.layers[i], DType::kFloat32));
      options.arrays.push_back(
          {outputs.arrays[i], DType::kFloat32, shape, range.first, range.second});
    } else if (configs[i].loss.name == "ctc" && shape.rank() == 2) {
      // With half as many labels as steps, there is room for a blank between all of them.
      options.arrays.push_back({outputs.arrays[i], DType::kInt64, Shape({(shape.dim(0) + 1) / 2}),
                                1, static_cast<double>(shape.dim(-1) - 1)});
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

SourcePtr InMemory(data::Dataset dataset) {
  return data::TableSource(std::make_shared<const data::Dataset>(std::move(dataset)));
}

StatusOr<SourcePtr> Generate(const config::TrainingConfig& config, Split split,
                             const model::Model& model) {
  const SourceConfig& source = SourceOf(config, split);
  if (source.format == config::DataFormat::kSynthetic) {
    ASSIGN_OR_RETURN(data::Dataset dataset, DrawArrays(config, split, model));
    return InMemory(std::move(dataset));
  }
  ASSIGN_OR_RETURN(data::Dataset dataset,
                   data::MakeLinear({.weights = source.weights,
                                     .bias = source.bias,
                                     .noise = source.noise,
                                     .low = source.low,
                                     .high = source.high,
                                     .examples = source.examples,
                                     .seed = static_cast<uint64_t>(config.seed)}));
  return InMemory(std::move(dataset));
}

StatusOr<SourcePtr> OpenTable(const config::TrainingConfig& config, Split split,
                              const model::Model& model, Extent extent) {
  const SourceConfig& source = SourceOf(config, split);
  if (!source.features.empty()) return OpenColumns(config, split, model, extent);
  return data::OpenCsv({.file = source.file,
                        .header = source.header,
                        .label_column = source.label_column,
                        .delimiter = source.delimiter[0],
                        .features = CsvType(model)},
                       StorageOf(source));
}

}  // namespace

StatusOr<std::shared_ptr<const data::Source>> LoadFormat(const config::TrainingConfig& config,
                                                         Split split, const model::Model& model,
                                                         Extent extent) {
  const SourceConfig& source = SourceOf(config, split);
  switch (source.format) {
    case config::DataFormat::kIdx:
      return data::OpenIdx({.images = source.images, .labels = source.labels}, StorageOf(source));
    case config::DataFormat::kCsv:
      return OpenTable(config, split, model, extent);
    case config::DataFormat::kNpz:
      return OpenArchive(source, split, model, extent);
    case config::DataFormat::kTfRecord:
    case config::DataFormat::kJsonLines:
      return OpenRecords(config, split, model, extent);
    case config::DataFormat::kImages:
      return OpenImages(config, split);
    case config::DataFormat::kText:
      return OpenText(config, split, model, DecodeThreads(config));
    case config::DataFormat::kTexts:
      return OpenTexts(config, split, DecodeThreads(config));
    case config::DataFormat::kLinear:
    case config::DataFormat::kSynthetic:
      return Generate(config, split, model);
    case config::DataFormat::kConcatenate:  // are loaded dataset by dataset
    case config::DataFormat::kMix:
    case config::DataFormat::kInterleave:
    case config::DataFormat::kZip:
    case config::DataFormat::kNone:
      break;
  }
  return InvalidArgument("data: there is no source of this kind in the training file");
}

}  // namespace tfjob::train
