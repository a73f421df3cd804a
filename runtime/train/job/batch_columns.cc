#include "runtime/train/job/batch_columns.h"

#include <algorithm>
#include <utility>

#include "runtime/base/did_you_mean.h"
#include "runtime/data/buckets.h"
#include "runtime/model/any_length.h"
#include "runtime/model/custom_loss.h"
#include "runtime/train/job/loss_model.h"

namespace tfjob::train {
namespace {

StatusOr<const data::Field*> FindField(const data::Source& source, Split split,
                                       const std::string& name) {
  const data::Field* field = source.Find(name);
  if (field != nullptr) return field;
  return InvalidArgument(
      KeyOf(split), ": the data provide no ", name,
      ", which the model needs; a model with several inputs or outputs takes "
      "data of the formats npz, tfrecord, jsonl, csv (with features) and synthetic");
}

// Returns InvalidArgument if an input has the same name as another of the graph's feeds.
Status CheckInputName(const std::string& name) {
  for (const std::string_view reserved : {model::kLabels, model::kSampleWeights, model::kStep,
                                          model::kSeed, model::kLossScale, model::kLossWeight}) {
    if (name == reserved || name.starts_with(StrCat(reserved, "/"))) {
      return InvalidArgument("input ", name, " of the model: the name \"", reserved,
                             "\" is reserved; rename the layer");
    }
  }
  return OkStatus();
}

// Returns InvalidArgument if the labels are classes, but the output has no axis for the classes.
Status CheckClasses(const config::TrainingConfig& config, const std::string& name,
                    const Shape& output) {
  if (output.rank() > 0 || config::ResolvedLabels(config) == config::LabelKind::kValue)
    return OkStatus();
  return InvalidArgument(config.loss.name, ": ", name, " are classes, so the model's output must ",
                         "have one score per class, but it is a single number per example; end the "
                         "model with a Dense layer of as many units as there are classes");
}

// Returns the form of the labels that the loss requires. The loss must not be custom.
model::LabelForm FormOf(const config::LossConfig& loss) {
  const StatusOr<model::LossKind> kind = model::ParseLoss(loss.name);
  return kind.ok() ? model::FormOf(*kind) : model::LabelForm::kValues;
}

// Returns the column of an output's labels, in the form that the output's loss requires. Call this
// only if CheckClasses has accepted the output.
data::Column LabelColumn(const config::TrainingConfig& config, const std::string& name,
                         const Shape& output, const data::Field& field) {
  data::Column column{.name = name, .array = name, .shape = field.shape};
  const config::LabelKind kind = config::ResolvedLabels(config);
  if (kind == config::LabelKind::kValue) return column;
  const int64_t classes = output.dim(-1);
  const int64_t width = field.shape.num_elements();
  if (kind == config::LabelKind::kOneHot) {
    column.shape = output;
    const bool rows_in_data = classes > 1 && width == output.num_elements();
    if (!rows_in_data) {
      column.classes = classes;
      column.one_hot = true;
    }
    return column;
  }
  column.dtype = DType::kInt64;
  const model::LabelForm form = FormOf(config.loss);
  if (form == model::LabelForm::kSequence && field.shape.rank() > 0) {
    column.classes = classes;
    return column;
  }
  column.shape = model::PlacesOf(output);
  if (form == model::LabelForm::kGroup) return column;
  column.classes = classes;
  column.ignored_class = config.loss.ignore_class;
  return column;
}

// Returns the column of an output's labels, in the type and shape that the model of a custom loss
// states.
StatusOr<data::Column> LossModelColumn(const config::TrainingConfig& config,
                                       const model::Model& loss, const std::string& name,
                                       const data::Field& field) {
  const config::LabelKind kind = config.data.labels;
  if (kind != config::LabelKind::kAuto && kind != config::LabelKind::kValue) {
    return InvalidArgument(
        "data.labels: expected auto or value, because loss.model determines the ",
        "form of the labels, got ", kind == config::LabelKind::kClass ? "class" : "one_hot");
  }
  const graph::TensorType labels = model::LabelsOf(loss, field.shape);
  return data::Column{.name = name, .array = name, .dtype = labels.dtype, .shape = labels.shape};
}

Status CheckLabels(const config::TrainingConfig& config, Split split, const data::Column& column,
                   const Shape& output, const data::Field& field) {
  const Shape wanted = column.one_hot ? model::PlacesOf(output) : column.shape;
  if (model::PairsWith(field.shape, wanted)) return OkStatus();
  const int64_t expected = wanted.num_elements();
  const std::string needs = field.shape.num_elements() == expected
                                ? StrCat("labels of shape ", wanted.ToString())
                                : StrCat(expected, " labels per example");
  return InvalidArgument(KeyOf(split), ": ", config.loss.name, " over outputs of shape ",
                         output.ToString(), " needs ", needs, ", but ", field.file,
                         " has labels of shape ", field.shape.ToString());
}

// Returns whether `longer` is `shape` followed by one more axis, of length 1.
bool IsFollowedByOne(const Shape& shape, const Shape& longer) {
  std::vector<int64_t> dims = shape.dims();
  dims.push_back(1);
  return longer.dims() == dims;
}

StatusOr<std::optional<data::Column>> WeightColumn(const config::TrainingConfig& config,
                                                   Split split, const std::string& labels,
                                                   const std::string& name, const Shape& output,
                                                   const data::Source& source) {
  const data::Field* field = source.Find(name);
  const bool by_class = split == Split::kTrain && !config.class_weight.empty();
  if (field != nullptr && by_class) {
    return InvalidArgument("class_weight: the data have sample weights, too (", field->file,
                           "); multiply them by the class weights, and remove this key");
  }
  if (field != nullptr) {
    data::Column column{.name = name, .array = name, .shape = field->shape};
    if (column.shape == Shape{1} || IsFollowedByOne(model::PlacesOf(output), column.shape))
      column.shape = model::PlacesOf(column.shape);
    return column;
  }
  if (!by_class) return std::optional<data::Column>();
  if (FormOf(config.loss) == model::LabelForm::kSequence) {
    return InvalidArgument("class_weight: expected one class per example, but ", config.loss.name,
                           " has a sequence of classes; remove class_weight");
  }
  return data::Column{.name = name,
                      .array = labels,
                      .shape = model::PlacesOf(output),
                      .class_weights = config.class_weight};
}

// The models of custom losses, one per output; null for other losses.
using LossModels = std::vector<std::shared_ptr<const model::Model>>;

// Marks the columns whose values are truncated to the length of a bucket (data::Column::by_length).
class LengthMarker {
 public:
  // `in` contains the types of the inputs. If the model accepts any length in the first axis of an
  // input, this axis has the length of the longest bucket.
  LengthMarker(const model::Model& model, const data::Buckets& buckets,
               const std::vector<graph::TensorType>& in,
               const std::vector<config::TrainingConfig>& configs, const LossModels& losses)
      : model_(model),
        buckets_(buckets),
        in_(in),
        configs_(configs),
        losses_(losses),
        stated_(model::StatedInputs(model)) {}

  Status Mark(const std::vector<graph::TensorType>& outputs, BatchColumns& columns) const {
    for (size_t i = 0; i < columns.inputs.size(); ++i) columns.inputs[i].by_length = Cuts(i);
    std::vector<bool> cut(outputs.size(), false);
    for (const int64_t length : buckets_.lengths()) RETURN_IF_ERROR(Compare(length, outputs, cut));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (cut[i]) RETURN_IF_ERROR(CutLabels(i, outputs[i].shape, columns.labels[i]));
      std::optional<data::Column>& weights = columns.sample_weights[i];
      if (weights) weights->by_length = cut[i] && weights->shape.rank() > 0;
    }
    return OkStatus();
  }

 private:
  bool Cuts(size_t input) const {
    return stated_[input] && model::HasAnyLength(stated_[input]->shape);
  }

  // Marks the labels of output i if its first axis has the length of the bucket.
  Status CutLabels(size_t i, const Shape& output, data::Column& labels) const {
    if (losses_[i] != nullptr) return CutLossModelLabels(i, output, labels);
    // These labels have a length of their own.
    if (FormOf(configs_[i].loss) == model::LabelForm::kSequence) return OkStatus();
    if (labels.classes > 0 && output.rank() == 1) {
      return InvalidArgument("data.bucket_by_length: expected as many classes in all batches, but ",
                             "output ", model::OutputNames(model_)[i], " has one score per place ",
                             "of the inputs; use a loss over values, or remove bucket_by_length");
    }
    // In the data, the labels may have another shape, but their values are in the same order as in
    // the output.
    if (labels.classes == 0) labels.shape = output;
    labels.by_length = true;
    return OkStatus();
  }

  // Marks the labels of a custom loss, whose shape loss.model determines, if they have a place for
  // each place of output i.
  Status CutLossModelLabels(size_t i, const Shape& output, data::Column& labels) const {
    const Shape stated = model::StatedInputs(*losses_[i])[0]->shape;
    if (labels.shape.rank() == 0 || labels.shape.dim(0) != output.dim(0)) return OkStatus();
    if (stated.rank() == labels.shape.rank() && stated.dim(0) == model::kAnyLength) {
      labels.by_length = true;
      return OkStatus();
    }
    return InvalidArgument(
        "data.bucket_by_length: expected null as the first length of the labels ",
        "in loss.model, because output ", model::OutputNames(model_)[i],
        " has as many places as the inputs, got ", model::StatedText(stated));
  }

  // Sets cut[i] if the first axis of output i has the length of the bucket. Returns InvalidArgument
  // if an output depends on the length in any other way.
  Status Compare(int64_t length, const std::vector<graph::TensorType>& outputs,
                 std::vector<bool>& cut) const {
    std::vector<graph::TensorType> in = in_;
    for (size_t i = 0; i < in.size(); ++i) {
      if (Cuts(i)) in[i].shape = WithFirst(in[i].shape, length);
    }
    const StatusOr<std::vector<graph::TensorType>> shorter = model::OutputTypes(model_, in);
    if (!shorter.ok())
      return Annotate(shorter.status(), StrCat("data.bucket_by_length: length ", length));
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Shape &whole = outputs[i].shape, &own = (*shorter)[i].shape;
      if (own == whole) continue;
      if (whole.rank() == 0 || whole.dim(0) != buckets_.lengths().back() ||
          own != WithFirst(whole, length)) {
        return InvalidArgument("data.bucket_by_length: expected outputs with as many places as ",
                               "the inputs, or whose shape does not depend on them, but output ",
                               model::OutputNames(model_)[i], " has the shape ", own.ToString(),
                               " for inputs of length ", length);
      }
      cut[i] = true;
    }
    return OkStatus();
  }

  static Shape WithFirst(const Shape& shape, int64_t length) {
    std::vector<int64_t> dims = shape.dims();
    dims[0] = length;
    return Shape(std::move(dims));
  }

  const model::Model& model_;
  const data::Buckets& buckets_;
  const std::vector<graph::TensorType>& in_;
  const std::vector<config::TrainingConfig>& configs_;  // one per output
  const LossModels& losses_;
  const std::vector<std::optional<graph::TensorType>> stated_;
};

}  // namespace

const config::SourceConfig& SourceOf(const config::TrainingConfig& config, Split split) {
  return split == Split::kTrain ? config.data.train : config.data.eval;
}

std::string_view KeyOf(Split split) {
  return split == Split::kTrain ? "data.train" : "data.eval";
}

StatusOr<std::vector<config::TrainingConfig>> OutputConfigs(const config::TrainingConfig& config,
                                                            const model::Model& model) {
  const std::vector<std::string> names = model::OutputNames(model);
  for (const std::string& named : config::NamedOutputs(config)) {
    if (std::ranges::find(names, named) != names.end()) continue;
    return InvalidArgument("outputs.", named, ": the model has no such output",
                           DidYouMean(named, names));
  }
  std::vector<config::TrainingConfig> configs;
  for (const std::string& name : names) {
    configs.push_back(config::ForOutput(config, name));
    if (configs.back().loss.name.empty()) {
      return InvalidArgument("outputs.", name,
                             ".loss: expected a loss for this output, or one for ",
                             "all (loss), but both are missing");
    }
  }
  return configs;
}

std::vector<data::Column> BatchColumns::All() const {
  std::vector<data::Column> all = inputs;
  all.insert(all.end(), labels.begin(), labels.end());
  for (const std::optional<data::Column>& column : sample_weights) {
    if (column) all.push_back(*column);
  }
  return all;
}

void BatchColumns::Describe(model::BuildOptions& build) const {
  build.features.clear();
  for (const data::Column& column : inputs) build.features.push_back({column.dtype, column.shape});
  build.objectives.resize(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    build.objectives[i].labels = {labels[i].dtype, labels[i].shape};
    build.objectives[i].sample_weights.reset();
    if (sample_weights[i]) build.objectives[i].sample_weights = sample_weights[i]->shape;
  }
}

std::set<std::string> ScaledInputs(const model::Model& model) {
  const std::vector<std::string> inputs = model::InputNames(model);
  const std::vector<std::optional<graph::TensorType>> stated = model::StatedInputs(model);
  std::set<std::string> scaled;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!stated[i] || stated[i]->dtype == DType::kFloat32) scaled.insert(inputs[i]);
  }
  return scaled;
}

StatusOr<std::vector<data::Column>> InputColumnsOf(const config::TrainingConfig& config,
                                                   Split split, const model::Model& model,
                                                   const data::Source& source) {
  std::vector<data::Column> columns;
  const std::vector<std::string> inputs = model::InputNames(model);
  const std::vector<std::optional<graph::TensorType>> stated = model::StatedInputs(model);
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckInputName(inputs[i]));
    ASSIGN_OR_RETURN(const data::Field* field, FindField(source, split, inputs[i]));
    const DType dtype = stated[i] ? stated[i]->dtype : DType::kFloat32;
    const double scale = dtype == DType::kFloat32 ? SourceOf(config, split).scale : 1;
    columns.push_back(
        {.name = inputs[i],
         .array = inputs[i],
         .dtype = dtype,
         .shape = stated[i] ? model::TakenAs(stated[i]->shape, field->shape) : field->shape,
         .scale = static_cast<float>(scale)});
  }
  return columns;
}

StatusOr<BatchColumns> ColumnsOf(const config::TrainingConfig& config, Split split,
                                 const model::Model& model, const data::Source& source) {
  BatchColumns columns;
  ASSIGN_OR_RETURN(columns.inputs, InputColumnsOf(config, split, model, source));
  std::vector<graph::TensorType> in;
  for (const data::Column& column : columns.inputs) in.push_back({column.dtype, column.shape});
  ASSIGN_OR_RETURN(const std::vector<graph::TensorType> outputs, model::OutputTypes(model, in));
  ASSIGN_OR_RETURN(const std::vector<config::TrainingConfig> configs, OutputConfigs(config, model));
  LossModels losses;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = model::LabelsName(model, i);
    const Shape& output = outputs[i].shape;
    ASSIGN_OR_RETURN(const data::Field* field, FindField(source, split, name));
    losses.emplace_back();
    if (IsCustom(configs[i].loss)) {
      ASSIGN_OR_RETURN(losses.back(), ReadLossModel(configs[i].loss));
      ASSIGN_OR_RETURN(columns.labels.emplace_back(),
                       LossModelColumn(configs[i], *losses.back(), name, *field));
    } else {
      RETURN_IF_ERROR(CheckClasses(configs[i], name, output));
      columns.labels.push_back(LabelColumn(configs[i], name, output, *field));
      RETURN_IF_ERROR(CheckLabels(configs[i], split, columns.labels.back(), output, *field));
    }
    ASSIGN_OR_RETURN(
        columns.sample_weights.emplace_back(),
        WeightColumn(configs[i], split, name, model::SampleWeightsName(model, i), output, source));
  }
  if (const data::Buckets* buckets = source.buckets())
    RETURN_IF_ERROR(LengthMarker(model, *buckets, in, configs, losses).Mark(outputs, columns));
  return columns;
}

}  // namespace tfjob::train
