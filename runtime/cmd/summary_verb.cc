// Implements `tfjob-trainer summary`, which prints a model's layers with their sizes and operation
// counts.
#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/cmd/model_source.h"
#include "runtime/cmd/verb.h"
#include "runtime/inference/flops.h"
#include "runtime/model/any_length.h"
#include "runtime/model/build.h"

namespace tfjob::cmd {
namespace {

using Row = std::vector<std::string>;

// Returns the rows as a table whose columns are as wide as their longest cell.
std::string Table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string ShapeText(const std::vector<model::TensorType>& types) {
  std::vector<std::string> shapes;
  for (const model::TensorType& type : types) {
    std::string shape = "(None";
    for (int64_t dim : type.shape.dims())
      shape += dim == model::kAnyLength ? ", None" : StrCat(", ", dim);
    shapes.push_back(shape + (type.shape.rank() == 0 ? ",)" : ")"));
  }
  return absl::StrJoin(shapes, " ");
}

// Returns a size with thousands separators, as Keras prints it.
std::string Grouped(int64_t number) {
  std::string digits = StrCat(number);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

// Converts the number to an int64, or to the largest int64 if the number is larger.
int64_t Rounded(double number) {
  return number < 0x1p63 ? static_cast<int64_t>(number) : INT64_MAX;
}

std::string Bytes(int64_t bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit < 4; ++unit) size /= 1024;
  return absl::StrFormat("%.2f %s", size, units[unit]);
}

struct Total {
  int64_t parameters = 0, bytes = 0;
  void Add(const model::VariableSpec& variable) {
    const int64_t elements = variable.shape.num_elements();
    parameters += elements;
    bytes += elements * static_cast<int64_t>(SizeOf(variable.dtype));
  }
  std::string Text() const { return StrCat(Grouped(parameters), " (", Bytes(bytes), ")"); }
};

std::string Givers(const model::Model& model, const model::Call& call) {
  std::vector<std::string> givers;
  for (const model::ValueRef& input : call.inputs) {
    givers.push_back(StrCat(model::LayerOf(model, input).name, "[", input.output, "]"));
  }
  return givers.empty() ? "-" : absl::StrJoin(givers, ", ");
}

// Returns one row per call of a layer. The parameters of a layer are counted only in the row of its
// first call.
std::vector<Row> Rows(const model::Model& model,
                      const std::vector<std::vector<model::TensorType>>& types,
                      const std::vector<model::VariableSpec>& variables) {
  std::vector<Row> rows = {{"Layer (type)", "Output Shape", "Param #"}};
  if (!model.sequential) rows[0].emplace_back("Connected to");
  std::set<int> seen;
  for (size_t i = 0; i < model.calls.size(); ++i) {
    const model::Call& call = model.calls[i];
    const model::Layer& layer = model.layers[static_cast<size_t>(call.layer)];
    Total own;
    for (const model::VariableSpec& variable : variables) {
      if (variable.name.starts_with(layer.name + "/")) own.Add(variable);
    }
    const bool first = seen.insert(call.layer).second;
    rows.push_back({StrCat(layer.name, " (", layer.config.class_name(), ")"), ShapeText(types[i]),
                    first ? Grouped(own.parameters) : "0"});
    if (!model.sequential) rows.back().push_back(Givers(model, call));
  }
  return rows;
}

// Returns the size of all layers' outputs for one example.
int64_t OutputBytes(const std::vector<std::vector<model::TensorType>>& types) {
  double bytes = 0;
  for (const std::vector<model::TensorType>& outputs : types) {
    for (const model::TensorType& type : outputs) {
      bytes +=
          static_cast<double>(type.shape.num_elements()) * static_cast<double>(SizeOf(type.dtype));
    }
  }
  return Rounded(bytes);
}

std::string ShapesOf(const std::vector<model::TensorType>& types) {
  std::vector<std::string> shapes;
  for (const model::TensorType& type : types) shapes.push_back(type.shape.ToString());
  return absl::StrJoin(shapes, " ");
}

StatusOr<std::string> Summary(const model::Model& model,
                              const std::vector<model::TensorType>& features) {
  const bool any_length = model::HasAnyLength(model);
  ASSIGN_OR_RETURN(const auto types, model::CallTypes(model, features));
  ASSIGN_OR_RETURN(const auto shown,
                   any_length ? model::StatedCallTypes(model) : model::CallTypes(model, features));
  ASSIGN_OR_RETURN(const auto variables, model::Variables(model, features));
  Total all, trainable, other;
  for (const model::VariableSpec& variable : variables) {
    all.Add(variable);
    (variable.trained() ? trainable : other).Add(variable);
  }
  ASSIGN_OR_RETURN(
      const model::BuiltGraph built,
      model::Build(model, {.mode = model::Mode::kPredict, .batch_size = 1, .features = features}));
  const std::string example =
      StrCat("per example", any_length ? StrCat(" of shape ", ShapesOf(features)) : "", ": ");
  return StrCat("Model: \"", model.name, "\"\n", Table(Rows(model, shown, variables)),
                "Total params: ", all.Text(), "\n", "Trainable params: ", trainable.Text(), "\n",
                "Non-trainable params: ", other.Text(), "\n", "Bytes ", example,
                Grouped(OutputBytes(types)), "\n", "FLOP ", example,
                Grouped(Rounded(inference::FloatingPointOperations(built.graph))), "\n");
}

class SummaryVerb : public Verb {
 public:
  std::string name() const override { return "summary"; }
  std::string help() const override { return "Prints a model's layers, sizes and arithmetic"; }
  void AddFlags(CLI::App& app) override { source_.AddFlags(app, /*with_weights=*/false); }

  Status Run(const StopSource&, std::ostream& output) override {
    ASSIGN_OR_RETURN(const LoadedModel loaded, LoadModel(source_, /*with_data=*/true));
    ASSIGN_OR_RETURN(const std::vector<model::TensorType> features, FeaturesOf(loaded));
    ASSIGN_OR_RETURN(const std::string summary, Summary(loaded.model, features));
    output << summary;
    return OkStatus();
  }

 private:
  ModelSource source_;
};

}  // namespace

std::unique_ptr<Verb> MakeSummaryVerb() {
  return std::make_unique<SummaryVerb>();
}

}  // namespace tfjob::cmd
