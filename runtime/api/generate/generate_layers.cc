// Generates the structs of the layers from the arguments that they declare.
#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "runtime/api/generate/generate.h"
#include "runtime/base/status.h"
#include "runtime/model/layer/activation.h"
#include "runtime/model/layer_table.h"

namespace tfjob::api {
namespace {

std::string Digits(double value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

template <typename T>
std::string ListOf(const std::vector<T>& values) {
  std::string list = "{";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) list += ", ";
    if constexpr (std::is_floating_point_v<T>) {
      list += Digits(values[i]);
    } else {
      list += StrCat(values[i]);
    }
  }
  return list + "}";
}

std::string Quoted(std::string_view text) {
  return StrCat("\"", text, "\"");
}

// Turns each argument of a layer into a member of its struct.
class FieldCollector : public model::ArgumentVisitor {
 public:
  const std::vector<GeneratedField>& fields() const { return fields_; }

  void Integer(std::string_view name, int64_t& value, const model::IntegerRule& rule) override {
    const bool any = rule.expected == model::IntegerRule().expected;
    const std::string_view doc = any ? std::string_view() : rule.expected;
    if (rule.required) return AddRequired("OptionalInteger", name, doc);
    Add("int64_t", name, StrCat(value), doc);
  }
  void Number(std::string_view name, double& value, const model::NumberRule& rule) override {
    const bool any = rule.expected == model::NumberRule().expected;
    const std::string_view doc = any ? std::string_view() : rule.expected;
    if (rule.required) return AddRequired("std::optional<double>", name, doc);
    Add("double", name, Digits(value), doc);
  }
  void Flag(std::string_view name, bool& value) override {
    Add("bool", name, value ? "true" : "false");
  }
  void Text(std::string_view name, std::string& value, bool required) override {
    if (required) return AddRequired("std::string", name);
    Add("std::string", name, value.empty() ? "{}" : Quoted(value));
  }
  void Numbers(std::string_view name, std::vector<double>& value) override {
    Add("std::vector<double>", name, ListOf(value));
  }
  void Optional(std::string_view name, std::optional<int64_t>& value) override {
    Add("OptionalInteger", name, value ? StrCat(*value) : "{}");
  }
  void Optional(std::string_view name, std::optional<double>& value,
                const model::NumberRule& rule) override {
    const bool any = rule.expected == model::NumberRule().expected;
    Add("std::optional<double>", name, value ? Digits(*value) : "{}", any ? "" : rule.expected);
  }
  void Integers(std::string_view name, std::vector<int64_t>& value,
                const model::ListRule& rule) override {
    if (rule.required) return AddRequired("Integers", name, rule.expected);
    Add("Integers", name, ListOf(value), rule.expected);
  }
  void CountOrList(std::string_view name, int64_t& count, std::vector<int64_t>& list,
                   const model::IntegerRule& rule) override {
    if (rule.required) return AddRequired("Integers", name, rule.expected);
    Add("Integers", name, list.empty() ? std::to_string(count) : ListOf(list), rule.expected);
  }
  void PerAxis(std::string_view name, std::vector<int64_t>& value,
               const model::IntegerRule& rule) override {
    if (rule.required) return AddRequired("Integers", name);
    Add("Integers", name, ListOf(value));
  }
  void Margins(std::string_view name, std::vector<int64_t>& value) override {
    Add("Integers", name, ListOf(value),
        "one number for all axes, one number per axis, or two numbers per axis (before, after)");
    fields_.back().set =
        StrCat("form.SetMargins(\"", name, "\", ", name, ", ", value.size() / 2, ");");
  }
  void Pairs(std::string_view name, std::vector<int64_t>&) override {
    AddRequired("Integers", name, "pairs of numbers, one after another");
    fields_.back().set = StrCat("form.SetPairs(\"", name, "\", ", name, ");");
  }
  void Axis(std::string_view name, int64_t& value) override { Add("int64_t", name, StrCat(value)); }
  void Axes(std::string_view name, std::vector<int64_t>& value) override {
    Add("Integers", name, ListOf(value));
  }
  void OptionalAxes(std::string_view name, std::vector<int64_t>& value) override {
    Axes(name, value);
  }
  void Sizes(std::string_view name, std::vector<int64_t>& value) override {
    Add("Integers", name, ListOf(value), "sizes; -1 stands for the size of the input");
    fields_.back().set = StrCat("form.SetSizes(\"", name, "\", ", name, ");");
  }
  void Activation(std::string_view name, model::ActivationKind& value, bool required) override {
    if (required) return AddRequired("std::string", name);
    Add("std::string", name, Quoted(model::Name(value)));
  }
  void Initializer(std::string_view name, model::Initializer&) override {
    Add("Named", name, "{}");
  }
  void Regularizer(std::string_view name, model::Regularizer&) override {
    Add("Named", name, "{}");
  }
  void Constraint(std::string_view name, optimizer::Constraint&) override {
    Add("Named", name, "{}");
  }
  void Wrapped(std::string_view name, std::shared_ptr<const model::Layer>&,
               bool required) override {
    if (required) return AddRequired("Layer", name);
    Add("Layer", name, "{}");
  }
  void WrappedList(std::string_view name,
                   std::vector<std::shared_ptr<const model::Layer>>&) override {
    AddRequired("std::vector<Layer>", name);
  }
  void InputShape(Shape&) override {}  // only InputLayer has one
  void Type(std::string_view name, DType& value) override {
    Add("std::string", name, Quoted(tfjob::Name(value)));
  }
  void ChoiceIndex(std::string_view name, size_t& value,
                   std::span<const std::string_view> names) override {
    std::string words;
    for (const std::string_view word : names) {
      words += StrCat(words.empty() ? "one of " : ", ",
                      word == "null" ? std::string("\"\" (null)") : Quoted(word));
    }
    Add("std::string", name, names[value] == "null" ? "{}" : Quoted(names[value]), words);
    fields_.back().set = StrCat("form.SetChoice(\"", name, "\", ", name, ");");
  }
  void Only(std::string_view, std::string_view) override {}
  void Retired(std::string_view, std::string_view) override {}
  void OldName(std::string_view, double&, const model::NumberRule&) override {}
  void Ignored(std::string_view) override {}

 private:
  void Add(std::string_view type, std::string_view name, std::string initial,
           std::string_view doc = "") {
    fields_.push_back({std::string(type), std::string(name), std::move(initial),
                       StrCat("form.Set(\"", name, "\", ", name, ");"), std::string(doc)});
  }
  // Adds a member that is initially empty. If the program does not set the member, the form has no
  // such argument, so the reader of layers reports that it is missing.
  void AddRequired(std::string_view type, std::string_view name, std::string_view doc = "") {
    Add(type, name, "{}", doc.empty() ? std::string("required") : StrCat("required; ", doc));
  }

  std::vector<GeneratedField> fields_;
};

bool Has(const std::vector<GeneratedField>& fields, std::string_view name) {
  for (const GeneratedField& field : fields) {
    if (field.name == name) return true;
  }
  return false;
}

void AddLayer(const model::LayerConfig& layer, std::string& header, std::string& source) {
  FieldCollector collector;
  (void)layer.Visited(collector);
  std::vector<GeneratedField> fields = collector.fields();
  OrderAsKeras(layer.class_name(), fields);
  const bool own_regularizer = Has(fields, "activity_regularizer");
  source += StrCat("\n", layer.class_name(), "::operator Layer() const {\n  Form form(\"",
                   layer.class_name(), "\");\n");
  for (const GeneratedField& field : fields) source += StrCat("  ", field.set, "\n");
  source += StrCat("  return Access::MakeLayer(std::move(form), name, trainable, ",
                   own_regularizer ? "{}" : "activity_regularizer", ");\n}\n");
  if (!own_regularizer) fields.push_back({"Named", "activity_regularizer", "{}", "", ""});
  OrderAsKeras(layer.class_name(), fields);
  fields.push_back({"std::string", "name", "{}", "", ""});
  fields.push_back({"bool", "trainable", "true", "", ""});
  header += StrCat(
      "\nstruct ", layer.class_name(), " {\n", Members(fields), "\n  operator Layer() const;\n",
      "  Symbol operator()(const Symbols& inputs) && { return Layer(*this)(inputs); }\n",
      "  Symbol operator()(const Symbols& inputs) const& = delete;  // assign it to a Layer, and ",
      "call that\n};\n");
}

constexpr char kAboutLayers[] =
    "Generated by //runtime/api/generate:write_headers. The members are Keras' arguments, "
    "in Keras' order; docs/training-file.md lists which layers and arguments are supported.";

}  // namespace

std::vector<GeneratedFile> LayerFiles() {
  std::vector<GeneratedFile> files;
  std::string all =
      StrCat(Comment("Includes all layers. Generated by //runtime/api/generate:write_headers.", ""),
             "#pragma once\n\n");
  std::vector<std::string> includes;
  for (const model::LayerFamily& family : model::LayerFamilies()) {
    const std::string name = StrCat(family.name, "_layers");
    std::string header =
        StrCat(Comment(StrCat("Defines the ", family.name, " layers. ", kAboutLayers), ""),
               "#pragma once\n\n#include <cstdint>\n#include <optional>\n#include <string>\n",
               "#include <vector>\n\n#include \"arguments.h\"\n#include \"layer.h\"\n\n",
               "namespace tfjob::api {\n");
    std::string source = StrCat(Comment("Generated by //runtime/api/generate:write_headers.", ""),
                                "#include \"runtime/api/", name,
                                ".h\"\n\n#include <utility>\n\n#include \"runtime/api/access.h\"\n",
                                "#include \"runtime/api/form.h\"\n\nnamespace tfjob::api {\n");
    for (const model::LayerConfig& layer : family.layers) AddLayer(layer, header, source);
    files.push_back({name + ".h", header + "\n}  // namespace tfjob::api\n"});
    files.push_back({name + ".cc", source + "\n}  // namespace tfjob::api\n"});
    includes.push_back(StrCat("#include \"", name, ".h\"\n"));
  }
  std::sort(includes.begin(), includes.end());
  for (const std::string& include : includes) all += include;
  files.push_back({"layers.h", std::move(all)});
  return files;
}

}  // namespace tfjob::api
