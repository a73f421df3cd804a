#include "tests/interop/data_verbs.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "runtime/base/file.h"
#include "runtime/config/tokenize.h"
#include "runtime/data/images/image_source.h"
#include "runtime/data/operators/join.h"
#include "runtime/data/operators/select.h"
#include "runtime/data/operators/zip.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"
#include "runtime/data/text/sequence_encoder.h"
#include "runtime/data/text/vocabulary.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "runtime/io/record.h"
#include "runtime/train/job/text_data.h"
#include "tests/interop/json_tensor.h"

namespace tfjob {
namespace {

// Reads all examples in one batch, with the columns of `reading`. Returns {name: tensor}.
StatusOr<Json> ReadAll(const std::shared_ptr<const data::Source>& source,
                       data::PipelineOptions reading) {
  reading.batch_size = source->size();
  reading.epochs = 1;
  reading.shuffle = false;
  ASSIGN_OR_RETURN(const auto pipeline, data::Pipeline::Create(source, reading));
  const data::Batch* batch = pipeline->Next();
  RETURN_IF_ERROR(pipeline->status());
  Json reply = Json::object();
  for (const data::NamedTensor& tensor : batch->tensors) reply[tensor.name] = ToJson(tensor.value);
  return reply;
}

// Returns the image options in a request: {"height", "width", "channels", "nearest", "crop"}.
data::ImageOptions ImageOf(const Json& request) {
  return {.channels = request["channels"].get<int64_t>(),
          .resize = {.height = request["height"].get<int64_t>(),
                     .width = request["width"].get<int64_t>(),
                     .method = request.value("nearest", false) ? data::Resize::kNearest
                                                               : data::Resize::kBilinear,
                     .crop_to_aspect_ratio = request.value("crop", false)}};
}

// Returns the source that a tree of operators describes: {"range": [first, end], "name"},
// {"select", "skip", "take", "repeat"}, {"concatenate": […]}, {"interleave": […], "cycle", "block"}
// or {"zip": […]}.
StatusOr<data::SourcePtr> SourceOf(const Json& tree) {
  if (tree.contains("range")) {
    const int64_t first = tree["range"][0].get<int64_t>(), end = tree["range"][1].get<int64_t>();
    Tensor numbers(DType::kInt64, {end - first});
    for (int64_t i = first; i < end; ++i)
      numbers.data<int64_t>()[static_cast<size_t>(i - first)] = i;
    const auto name = tree["name"].get<std::string>();
    return data::TableSource(
        std::make_shared<const data::Dataset>(data::Dataset{.arrays = {{name, "range", numbers}}}));
  }
  if (tree.contains("select")) {
    ASSIGN_OR_RETURN(data::SourcePtr source, SourceOf(tree["select"]));
    return data::Select(std::move(source), {.skip = tree.value("skip", int64_t{0}),
                                            .take = tree.value("take", int64_t{-1}),
                                            .repeat = tree.value("repeat", int64_t{1})});
  }
  const std::string op = tree.contains("concatenate") ? "concatenate"
                         : tree.contains("zip")       ? "zip"
                                                      : "interleave";
  std::vector<data::SourcePtr> parts;
  for (const Json& part : tree[op]) {
    ASSIGN_OR_RETURN(parts.emplace_back(), SourceOf(part));
  }
  if (op == "concatenate") return data::Concatenate(std::move(parts));
  if (op == "zip") return data::Zip(std::move(parts));
  return data::Interleave(std::move(parts), {.cycle_length = tree["cycle"].get<int64_t>(),
                                             .block_length = tree["block"].get<int64_t>()});
}

}  // namespace

// {"folder", "classes", "threads", …: ImageOf} → {"features", "labels"}
StatusOr<Json> ReadImages(const Json& request) {
  ASSIGN_OR_RETURN(
      const auto source,
      data::OpenImages({.folder = request["folder"].get<std::string>(),
                        .classes = request.value("classes", std::vector<std::string>()),
                        .image = ImageOf(request),
                        .threads = request.value("threads", 1)}));
  data::PipelineOptions reading;
  for (const data::Field& field : source->fields()) {
    reading.columns.push_back(
        {.name = field.name, .array = field.name, .dtype = field.dtype, .shape = field.shape});
  }
  return ReadAll(source, reading);
}

// {"files": […], "features": {name: {"dtype", "shape", "raw", "variable", "sequence", "fill",
// "image": ImageOf}}} → {name: tensor}, with all records in the order of the files
StatusOr<Json> ReadRecords(const Json& request) {
  data::RecordOptions options{.files = request["files"].get<std::vector<std::string>>()};
  data::PipelineOptions reading;
  for (const auto& [name, feature] : request["features"].items()) {
    options.features.push_back({.name = name,
                                .dtype = *ParseDType(feature["dtype"].get<std::string>()),
                                .raw = feature.value("raw", false),
                                .shape = Shape(feature["shape"].get<std::vector<int64_t>>()),
                                .variable = feature.value("variable", false),
                                .sequence = feature.value("sequence", false)});
    data::ExampleFeature& added = options.features.back();
    if (feature.contains("fill")) added.fill = feature["fill"].get<double>();
    if (feature.contains("image")) added.image = ImageOf(feature["image"]);
    options.fields.push_back({name, name});
    reading.columns.push_back(
        {.name = name, .array = name, .dtype = added.dtype, .shape = added.shape});
  }
  ASSIGN_OR_RETURN(const auto source, data::OpenTfRecords(options));
  return ReadAll(source, reading);
}

// {"file", "records": [their bytes in hexadecimal digits]} → {}
StatusOr<Json> WriteRecords(const Json& request) {
  std::string content;
  for (const Json& digits : request["records"])
    io::AppendRecord(absl::HexStringToBytes(digits.get<std::string>()), content);
  RETURN_IF_ERROR(WriteFileAtomically(request["file"].get<std::string>(), content));
  return Json::object();
}

// A tree of operators (SourceOf) → {name: tensor}, with all examples in order
StatusOr<Json> ReadDataset(const Json& request) {
  ASSIGN_OR_RETURN(const data::SourcePtr source, SourceOf(request));
  data::PipelineOptions reading;
  for (const data::Field& field : source->fields()) {
    reading.columns.push_back(
        {.name = field.name, .array = field.name, .dtype = field.dtype, .shape = field.shape});
  }
  return ReadAll(source, reading);
}

// {"tokenizer": {"name", "vocabulary", "merges", …}, "texts": [their bytes in hexadecimal digits]}
// → the ids of each text, without padding
StatusOr<Json> Tokenize(const Json& request) {
  const Json config = {{"tokenize", request["tokenizer"]}};
  ASSIGN_OR_RETURN(const config::TokenizeConfig tokenize,
                   config::ReadTokenize(JsonField(config)["tokenize"]));
  ASSIGN_OR_RETURN(const text::SequenceOptions options,
                   train::ReadTokenizer(tokenize, std::nullopt, "tokenizer"));
  text::SequenceEncoder encoder(options);
  std::vector<int64_t> ids(static_cast<size_t>(tokenize.max_length));
  Json reply = Json::array();
  for (const Json& digits : request["texts"]) {
    const std::string bytes = absl::HexStringToBytes(digits.get<std::string>());
    ASSIGN_OR_RETURN(const size_t count, encoder.Encode(bytes, ids));
    reply.push_back(std::vector<int64_t>(ids.begin(), ids.begin() + static_cast<int64_t>(count)));
  }
  return reply;
}

// {"vocabulary": terms, "num_oov_indices", "terms"} → the ids of the terms
StatusOr<Json> LookUp(const Json& request) {
  ASSIGN_OR_RETURN(
      const text::Vocabulary vocabulary,
      text::Vocabulary::FromTerms(request["vocabulary"].get<std::vector<std::string>>(),
                                  request["num_oov_indices"].get<int64_t>(), "the vocabulary"));
  Json ids = Json::array();
  for (const Json& term : request["terms"]) {
    ASSIGN_OR_RETURN(ids.emplace_back(), vocabulary.Find(term.get<std::string>()));
  }
  return ids;
}

}  // namespace tfjob
