#include "runtime/config/features.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/config/tokenize.h"

namespace tfjob::config {
namespace {

const std::vector<std::string> kKeys = {
    "dtype",      "shape",        "max_length",      "default_value",
    "decode_raw", "decode_image", "resize",          "crop_to_aspect_ratio",
    "tokenize",   "vocabulary",   "num_oov_indices", "columns"};
const std::vector<std::string> kTypes = {"float32", "int64", "string"};
const std::vector<std::string> kResizeMethods = {"bilinear", "nearest"};
const std::vector<std::string> kRawTypes = {"uint8", "int32", "int64", "float32", "float64"};

constexpr int64_t kMostOovIndices = int64_t{1} << 24;
constexpr int64_t kMostElements = int64_t{1} << 28;  // of an example

StatusOr<std::string> ReadType(const JsonField& field, const std::vector<std::string>& types) {
  const StatusOr<std::string> name = field.String();
  if (name.ok() && std::ranges::find(types, *name) != types.end()) return name;
  std::string expected = "one of ";
  for (const std::string& type : types) expected += (&type == types.data() ? "" : ", ") + type;
  return field.Mismatch(expected);
}

StatusOr<int64_t> ReadLength(const JsonField& field) {
  ASSIGN_OR_RETURN(const int64_t length, field.Int());
  if (length >= 1 && length <= kMostElements) return length;
  return field.Mismatch(StrCat("a length from 1 to ", kMostElements));
}

StatusOr<std::vector<int64_t>> ReadShape(const JsonField& field) {
  if (!field.present() || !field.value()->is_array())
    return field.Mismatch("a list of lengths, such as [28, 28], or [] for one value");
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(const int64_t length, ReadLength(element));
    shape.push_back(length);
    if (length > kMostElements / count)
      return field.Mismatch(StrCat("a shape of at most ", kMostElements, " elements"));
    count *= length;
  }
  return shape;
}

Status CheckImage(const FeatureConfig& feature, const std::string& at) {
  const std::vector<int64_t> shape = feature.shape.value_or(std::vector<int64_t>());
  const bool channels = shape.size() == 3 && (shape[2] == 1 || shape[2] == 3 || shape[2] == 4);
  if (!channels) {
    return InvalidArgument(at, ".shape: expected the height, width and channels (1, 3 or 4) of ",
                           "the image, such as [224, 224, 3]");
  }
  if (feature.max_length || feature.default_value) {
    return InvalidArgument(at, feature.max_length ? ".max_length" : ".default_value",
                           ": cannot be combined with decode_image; remove it");
  }
  return OkStatus();
}

bool HasTerms(const FeatureConfig& feature) {
  return !feature.terms.empty() || !feature.vocabulary.empty();
}

// Checks the default value of an id.
Status CheckDefaultId(const FeatureConfig& feature, const std::string& at) {
  const double id = feature.default_value.value_or(0);
  if (std::floor(id) == id && std::fabs(id) <= 0x1p53) return OkStatus();
  return InvalidArgument(at, ".default_value: expected an integer, which is an id, got ", id);
}

Status CheckText(const FeatureConfig& feature, const std::string& at) {
  if (feature.shape || feature.max_length) {
    return InvalidArgument(at, feature.shape ? ".shape" : ".max_length",
                           ": cannot be combined with tokenize, whose max_length gives the shape; "
                           "remove it");
  }
  return CheckDefaultId(feature, at);
}

Status CheckTerms(const FeatureConfig& feature, const std::string& at) {
  if (feature.shape && feature.max_length) {
    return InvalidArgument(at, ".max_length: cannot be combined with shape and a vocabulary; ",
                           "remove one of the two");
  }
  return CheckDefaultId(feature, at);
}

// Checks a feature that is a string.
Status CheckString(const FeatureConfig& feature, const std::string& at) {
  std::vector<std::string> readings;
  if (!feature.decode_raw.empty()) readings.emplace_back("decode_raw");
  if (feature.decode_image) readings.emplace_back("decode_image");
  if (feature.tokenize) readings.emplace_back("tokenize");
  if (HasTerms(feature)) readings.emplace_back("vocabulary");
  if (readings.size() != 1) {
    return InvalidArgument(
        at,
        ": expected one of decode_raw (the type of the elements that the string consists of), "
        "decode_image: true (a JPEG or PNG image), tokenize (a text) and vocabulary (terms), since "
        "models take numbers, got ",
        readings.empty() ? "none" : absl::StrJoin(readings, " and "));
  }
  if (feature.decode_image) return CheckImage(feature, at);
  if (feature.tokenize) return CheckText(feature, at);
  if (HasTerms(feature)) return CheckTerms(feature, at);
  if (feature.max_length && !feature.shape) {
    return InvalidArgument(at, ".shape: expected the shape of one step, which is one string of ",
                           "this sequence, but it is missing");
  }
  if (!feature.default_value) return OkStatus();
  return InvalidArgument(at, ".default_value: cannot be combined with decode_raw; remove it");
}

// Checks that a key that modifies another key is set only if the other key is set.
Status CheckOwners(const FeatureConfig& feature, const std::string& at) {
  const bool image_keys = feature.resize || feature.crop_to_aspect_ratio;
  if (image_keys && !feature.decode_image) {
    return InvalidArgument(at, feature.resize ? ".resize" : ".crop_to_aspect_ratio",
                           ": belongs to decode_image: true, which is not set; set it, or remove ",
                           "the key");
  }
  if (feature.num_oov_indices && !HasTerms(feature)) {
    return InvalidArgument(at, ".num_oov_indices: belongs to vocabulary, which is not set; set ",
                           "it, or remove the key");
  }
  return OkStatus();
}

// Checks the rules that involve several keys of a feature.
Status CheckFeature(const FeatureConfig& feature, const std::string& at) {
  const bool has_shape = feature.shape || feature.max_length || feature.tokenize;
  if (!has_shape && feature.columns.empty()) {
    return InvalidArgument(
        at,
        ": expected shape (tf.io.FixedLenFeature), max_length (tf.io.VarLenFeature) or both "
        "(tf.io.FixedLenSequenceFeature), got neither");
  }
  if (feature.shape && feature.max_length) {
    int64_t count = *feature.max_length;
    for (const int64_t length : *feature.shape) count *= length;  // both are at most 2^28
    if (count > kMostElements) {
      return InvalidArgument(at, ".max_length: expected steps with at most ", kMostElements,
                             " elements in all, got ", count);
    }
  }
  RETURN_IF_ERROR(CheckOwners(feature, at));
  if (feature.dtype == "string") return CheckString(feature, at);
  for (const auto& [key, set] : {std::pair("decode_raw", !feature.decode_raw.empty()),
                                 std::pair("decode_image", feature.decode_image),
                                 std::pair("tokenize", feature.tokenize.has_value()),
                                 std::pair("vocabulary", HasTerms(feature))}) {
    if (!set) continue;
    return InvalidArgument(at, ".", key, ": belongs to dtype string, but dtype is ", feature.dtype,
                           "; remove one of the two");
  }
  const double value = feature.default_value.value_or(0);
  const bool fits = feature.dtype == "int64"
                        ? std::floor(value) == value && std::fabs(value) <= 0x1p53
                        : std::isfinite(static_cast<float>(value));
  if (fits) return OkStatus();
  return InvalidArgument(at, ".default_value: expected a number of the type ", feature.dtype,
                         ", got ", value);
}

StatusOr<std::vector<std::string>> ReadColumns(const JsonField& field) {
  const bool list = field.present() && field.value()->is_array() && !field.value()->empty();
  if (!list) return field.Mismatch("a list of names of columns");
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  std::vector<std::string> columns;
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(columns.emplace_back(), element.String());
  }
  return columns;
}

// Reads a list of terms, or the path of a file.
Status ReadVocabulary(const JsonField& field, FeatureConfig& feature) {
  const StatusOr<std::string> file = field.String();
  if (file.ok() && !file->empty()) {
    feature.vocabulary = *file;
    return OkStatus();
  }
  const bool list = field.present() && field.value()->is_array() && !field.value()->empty();
  if (!list) return field.Mismatch("a list of terms, or a file with one term per line");
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(feature.terms.emplace_back(), element.String());
  }
  return OkStatus();
}

Status ReadOovIndices(const JsonField& field, FeatureConfig& feature) {
  ASSIGN_OR_RETURN(feature.num_oov_indices, field.Int());
  if (*feature.num_oov_indices >= 0 && *feature.num_oov_indices <= kMostOovIndices)
    return OkStatus();
  return field.Mismatch(StrCat("a number of ids from 0 to ", kMostOovIndices));
}

// Reads the keys that determine the meaning of a string.
Status ReadStringMember(const std::string& name, const JsonField& member, FeatureConfig& feature) {
  if (name == "decode_raw") {
    ASSIGN_OR_RETURN(feature.decode_raw, ReadType(member, kRawTypes));
  } else if (name == "decode_image") {
    ASSIGN_OR_RETURN(feature.decode_image, member.Bool());
  } else if (name == "resize") {
    ASSIGN_OR_RETURN(const std::string method, ReadType(member, kResizeMethods));
    feature.resize = method == kResizeMethods[0] ? ResizeMethod::kBilinear : ResizeMethod::kNearest;
  } else if (name == "crop_to_aspect_ratio") {
    ASSIGN_OR_RETURN(feature.crop_to_aspect_ratio, member.Bool());
  } else if (name == "tokenize") {
    ASSIGN_OR_RETURN(feature.tokenize, ReadTokenize(member));
  } else if (name == "vocabulary") {
    return ReadVocabulary(member, feature);
  } else if (name == "num_oov_indices") {
    return ReadOovIndices(member, feature);
  } else {
    return InvalidArgument(member.path(), ": unknown key", DidYouMean(name, kKeys));
  }
  return OkStatus();
}

StatusOr<FeatureConfig> ReadFeature(const JsonField& field) {
  if (!field.IsObject())
    return field.Mismatch("a map of keys, such as {dtype: float32, shape: [784]}");
  ASSIGN_OR_RETURN(const auto members, field.Members());
  FeatureConfig feature;
  ASSIGN_OR_RETURN(feature.dtype, ReadType(field["dtype"], kTypes));
  for (const auto& [name, member] : members) {
    if (name == "shape") {
      ASSIGN_OR_RETURN(feature.shape, ReadShape(member));
    } else if (name == "max_length") {
      ASSIGN_OR_RETURN(feature.max_length, ReadLength(member));
    } else if (name == "default_value") {
      ASSIGN_OR_RETURN(feature.default_value, member.Double());
    } else if (name == "columns") {
      ASSIGN_OR_RETURN(feature.columns, ReadColumns(member));
    } else if (name != "dtype") {
      RETURN_IF_ERROR(ReadStringMember(name, member, feature));
    }
  }
  RETURN_IF_ERROR(CheckFeature(feature, field.path()));
  return feature;
}

}  // namespace

StatusOr<Features> ReadFeatures(const JsonField& field) {
  if (!field.IsObject())
    return field.Mismatch(
        "a map of names to features, such as {x: {dtype: float32, shape: [784]}}");
  ASSIGN_OR_RETURN(const auto members, field.Members());
  Features features;
  for (const auto& [name, member] : members) {
    ASSIGN_OR_RETURN(features[name], ReadFeature(member));
  }
  return features;
}

Json FeaturesToJson(const Features& features) {
  Json json = Json::object();
  for (const auto& [name, feature] : features) {
    Json& written = json[name];
    written["dtype"] = feature.dtype;
    if (feature.shape) written["shape"] = *feature.shape;
    if (feature.max_length) written["max_length"] = *feature.max_length;
    if (feature.default_value) written["default_value"] = *feature.default_value;
    if (!feature.decode_raw.empty()) written["decode_raw"] = feature.decode_raw;
    if (feature.decode_image) written["decode_image"] = true;
    if (feature.resize) written["resize"] = kResizeMethods[static_cast<size_t>(*feature.resize)];
    if (feature.crop_to_aspect_ratio)
      written["crop_to_aspect_ratio"] = *feature.crop_to_aspect_ratio;
    if (feature.tokenize) written["tokenize"] = TokenizeToJson(*feature.tokenize);
    if (!feature.terms.empty()) written["vocabulary"] = feature.terms;
    if (!feature.vocabulary.empty()) written["vocabulary"] = feature.vocabulary;
    if (feature.num_oov_indices) written["num_oov_indices"] = *feature.num_oov_indices;
    if (!feature.columns.empty()) written["columns"] = feature.columns;
  }
  return json;
}

Json FeaturesSchema() {
  const Json length = {{"type", "integer"}, {"minimum", 1}, {"maximum", kMostElements}};
  const Json oov = {{"type", "integer"}, {"minimum", 0}, {"maximum", kMostOovIndices}};
  const Json text = {{"type", "string"}, {"minLength", 1}};
  const Json terms = {{"type", "array"}, {"items", {{"type", "string"}}}, {"minItems", 1}};
  const Json feature = {{"type", "object"},
                        {"additionalProperties", false},
                        {"required", {"dtype"}},
                        {"properties",
                         {{"dtype", {{"type", "string"}, {"enum", kTypes}}},
                          {"shape", {{"type", "array"}, {"items", length}}},
                          {"max_length", length},
                          {"default_value", {{"type", "number"}}},
                          {"decode_raw", {{"type", "string"}, {"enum", kRawTypes}}},
                          {"decode_image", {{"type", "boolean"}}},
                          {"resize", {{"type", "string"}, {"enum", kResizeMethods}}},
                          {"crop_to_aspect_ratio", {{"type", "boolean"}}},
                          {"tokenize", TokenizeSchema()},
                          {"vocabulary", {{"anyOf", Json::array({text, terms})}}},
                          {"num_oov_indices", oov},
                          {"columns", terms}}}};
  return {{"type", "object"}, {"additionalProperties", feature}};
}

}  // namespace tfjob::config
