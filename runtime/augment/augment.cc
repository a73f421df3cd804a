#include "runtime/augment/augment.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/augment/example_program.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/json.h"
#include "runtime/base/philox.h"
#include "runtime/data/row_memory.h"
#include "runtime/data/row_pool.h"
#include "runtime/model/any_length.h"
#include "runtime/model/keras.h"

namespace tfjob::augment {
namespace {

constexpr int kMostThreads = 512;  // each has a program

using data::Column;
using data::Field;
using data::NamedTensor;

// Returns the values of one example in a tensor [rows, …].
template <typename T>
std::span<T> ExampleAt(std::span<T> values, size_t row, size_t rows) {
  const size_t width = values.size() / rows;
  return values.subspan(row * width, width);
}

class AugmentedReader : public data::RowReader {
 public:
  // Creates a reader. `changed` contains the indices of the columns to change. The reader uses
  // `programs.size()` threads, each of which has one of the programs.
  AugmentedReader(std::unique_ptr<data::RowReader> reader, std::vector<size_t> changed,
                  std::vector<std::unique_ptr<ExampleProgram>> programs, Shape example,
                  uint64_t seed)
      : reader_(std::move(reader)),
        changed_(std::move(changed)),
        programs_(std::move(programs)),
        example_(std::move(example)),
        pool_(static_cast<int>(programs_.size())),
        seed_(PhiloxKey(seed, "augment")) {
    BeginEpoch(0);
  }

  void BeginEpoch(int64_t epoch) override {
    epoch_key_ = PhiloxKey(seed_ + static_cast<uint64_t>(epoch), "epoch");
  }

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    if (rows.empty()) return OkStatus();
    const std::span<NamedTensor> read = Staged(static_cast<int64_t>(rows.size()), tensors);
    RETURN_IF_ERROR(reader_->Read(rows, read));
    const Status changed = pool_.ForEach(rows.size(), [&](size_t lane, size_t row) {
      return Change(*programs_[lane], rows, row, read, tensors);
    });
    for (size_t i = 0; i < read.size(); ++i) {
      if (!IsChanged(i)) read[i].value = Tensor();  // owned by the caller
    }
    return changed;
  }

 private:
  // Returns the tensors that the source reads into: separate tensors for the original values of the
  // columns to change, and the tensors of the batch for all other columns.
  std::span<NamedTensor> Staged(int64_t rows, std::span<const NamedTensor> tensors) {
    if (rows > most_rows_) {
      most_rows_ = rows;
      memory_.clear();
      by_rows_.clear();
      for (size_t i = 0; i < changed_.size(); ++i)
        memory_.emplace_back(DType::kFloat32, example_, rows);
    }
    std::vector<NamedTensor>& staged = by_rows_[rows];
    const bool made = staged.empty();
    if (made) staged.assign(tensors.begin(), tensors.end());
    for (size_t i = 0; i < staged.size() && !made; ++i) {
      if (!IsChanged(i)) staged[i].value = tensors[i].value;
    }
    for (size_t i = 0; i < changed_.size() && made; ++i)
      staged[changed_[i]].value = memory_[i].First(rows);
    return staged;
  }

  bool IsChanged(size_t column) const {
    return std::ranges::find(changed_, column) != changed_.end();
  }

  Status Change(ExampleProgram& program, std::span<const int64_t> rows, size_t row,
                std::span<NamedTensor> from, std::span<NamedTensor> to) const {
    for (const size_t column : changed_) {
      const auto read = std::as_const(from[column].value).data<float>();
      const Status changed =
          program.Run({epoch_key_, rows[row]}, ExampleAt(read, row, rows.size()),
                      ExampleAt(to[column].value.data<float>(), row, rows.size()));
      if (!changed.ok()) return Annotate(changed, StrCat("example ", rows[row]));
    }
    return OkStatus();
  }

  const std::unique_ptr<data::RowReader> reader_;
  const std::vector<size_t> changed_;
  const std::vector<std::unique_ptr<ExampleProgram>> programs_;
  const Shape example_;  // shape of an example before the change
  data::RowPool pool_;
  const uint64_t seed_;
  uint64_t epoch_key_ = 0;
  int64_t most_rows_ = 0;                                // number of rows in memory_
  std::vector<data::RowMemory> memory_;                  // one per changed column
  std::map<int64_t, std::vector<NamedTensor>> by_rows_;  // results of Staged
};

class Augmented : public data::Source {
 public:
  // Creates a source. `in` and `made` are the shapes of an example before and after the layers.
  Augmented(std::shared_ptr<const data::Source> source, Options options, Shape in, Shape made,
            graph::Graph graph)
      : source_(std::move(source)),
        options_(std::move(options)),
        in_(std::move(in)),
        graph_(std::move(graph)),
        fields_(source_->fields()) {
    for (Field& field : fields_) {
      if (field.name != options_.field) continue;
      field.dtype = DType::kFloat32;
      field.shape = made;
    }
  }

  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return false; }
  std::vector<int64_t> file_starts() const override { return source_->file_starts(); }
  int64_t rows_in_memory() const override { return source_->rows_in_memory(); }
  bool random_access() const override { return source_->random_access(); }
  std::string Describe() const override {
    std::vector<std::string> layers;
    for (const model::Layer& layer : options_.layers.layers)
      layers.emplace_back(layer.config.class_name());
    return StrCat(source_->Describe(), "; ", options_.field, " changed by ",
                  absl::StrJoin(layers, ", "), options_.training ? "" : " as in evaluation",
                  " when a batch needs it by ", options_.threads,
                  options_.threads == 1 ? " thread" : " threads");
  }
  std::string LeftOut() const override { return source_->LeftOut(); }
  uint64_t fingerprint() const override {
    Fnv1a hash;
    hash.Add("augment").AddWord(source_->fingerprint()).AddWord(options_.seed);
    hash.Add(PrintJson(model::WriteKerasJson(options_.layers))).AddWord(options_.training ? 1 : 0);
    return hash.hash();
  }

  StatusOr<std::unique_ptr<data::RowReader>> Open(
      const std::vector<Column>& columns) const override {
    std::vector<size_t> changed;
    std::vector<Column> read = columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].array != options_.field) continue;
      RETURN_IF_ERROR(CheckColumn(columns[i]));
      changed.push_back(i);
      read[i].shape = in_;
    }
    ASSIGN_OR_RETURN(std::unique_ptr<data::RowReader> reader, source_->Open(read));
    if (changed.empty()) return reader;
    std::vector<std::unique_ptr<ExampleProgram>> programs(static_cast<size_t>(options_.threads));
    for (auto& program : programs) {
      ASSIGN_OR_RETURN(program, ExampleProgram::Create(graph_));
    }
    return std::make_unique<AugmentedReader>(std::move(reader), std::move(changed),
                                             std::move(programs), in_, options_.seed);
  }

 private:
  Status CheckColumn(const Column& column) const {
    if (column.dtype != DType::kFloat32) {
      return InvalidArgument("data.augment: expected a model that takes ", options_.field,
                             " as float32, got ", Name(column.dtype));
    }
    const Shape& made = Find(options_.field)->shape;
    if (column.shape.num_elements() == made.num_elements()) return OkStatus();
    return InvalidArgument("data.augment: expected ", options_.field, " of shape ",
                           column.shape.ToString(), " after the layers, got ", made.ToString());
  }

  const std::shared_ptr<const data::Source> source_;
  const Options options_;
  const Shape in_;
  const graph::Graph graph_;
  std::vector<Field> fields_;
};

// Returns the shape of an example after the layers, or nullopt if the layers do not accept the
// shape `in`.
std::optional<Shape> ShapeAfter(const model::Model& layers, const Shape& in) {
  const auto out = model::OutputTypes(layers, model::Features(in));
  return out.ok() && !out->empty() ? std::optional((*out)[0].shape) : std::nullopt;
}

// Returns the shape of the field's examples when they are passed to the layers. As for models, a
// last axis of length 1 may be missing from the data.
Shape ShapeBefore(const model::Model& layers, const Shape& field) {
  const std::optional<model::TensorType> stated = model::StatedInputs(layers)[0];
  if (stated) return model::TakenAs(stated->shape, field);
  std::vector<int64_t> dims = field.dims();
  dims.push_back(1);
  const Shape longer(std::move(dims));
  return !ShapeAfter(layers, field) && ShapeAfter(layers, longer) ? longer : field;
}

Status CheckLayers(const model::Model& layers, const Shape& in) {
  const std::vector<model::TensorType> features = model::Features(in);
  ASSIGN_OR_RETURN(const auto out, model::OutputTypes(layers, features));
  if (out.size() != 1 || out[0].dtype != DType::kFloat32) {
    return InvalidArgument("expected layers that return one float32 value, got ", out.size(),
                           out.size() == 1 ? StrCat(" of type ", Name(out[0].dtype)) : " values");
  }
  // Reject layers with variables: these would have to be trained and saved with the model.
  ASSIGN_OR_RETURN(const std::vector<model::VariableSpec> variables,
                   model::Variables(layers, features));
  if (variables.empty()) return OkStatus();
  return InvalidArgument("expected layers without variables, such as RandomFlip, got the variable ",
                         variables[0].name, "; move its layer to the model");
}

}  // namespace

StatusOr<std::shared_ptr<const data::Source>> Augment(std::shared_ptr<const data::Source> source,
                                                      Options options) {
  const Field* const field = source->Find(options.field);
  if (field == nullptr) return InvalidArgument("the examples have no field ", options.field);
  Shape in = ShapeBefore(options.layers, field->shape);
  RETURN_IF_ERROR(CheckLayers(options.layers, in));
  Shape made = *ShapeAfter(options.layers, in);
  ASSIGN_OR_RETURN(graph::Graph graph, ExampleGraph(options.layers, in, options.training));
  // Compile the graph now, so that an op without a kernel is reported before the first batch is
  // read.
  RETURN_IF_ERROR(ExampleProgram::Create(graph).status());
  options.threads = std::min(options.threads, kMostThreads);
  return std::make_shared<const Augmented>(std::move(source), std::move(options), std::move(in),
                                           std::move(made), std::move(graph));
}

}  // namespace tfjob::augment
