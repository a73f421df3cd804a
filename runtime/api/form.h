// Describes layers, optimizers, losses and schedules as training files do: by a name and arguments.
// Private to this package.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/api/arguments.h"
#include "runtime/api/layer.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::api {

struct FormData {
  std::string name;
  Json arguments = Json::object();
  tfjob::Status error = {};  // the error of a model in the arguments
};

Json ToJson(const Value& value);
// Returns the name, or {NAME: {argument: value}} if there are arguments.
Json ToJson(const Named& named);
// Returns {name: NAME, argument: value, …}, the form that metrics have in training files.
Json MetricJson(const Named& metric);

// Collects the arguments of a layer, an optimizer, a loss or a schedule. Leaves out arguments that
// are not set (an empty optional, name, string, list or layer), so that the defaults apply.
class Form {
 public:
  explicit Form(const char* name) : data_{.name = name} {}

  void Set(const char* key, bool value) { data_.arguments[key] = value; }
  void Set(const char* key, int64_t value) { data_.arguments[key] = value; }
  // The number must be finite, because JSON cannot represent other numbers.
  void Set(const char* key, double value);
  void Set(const char* key, const std::string& value);
  void Set(const char* key, const std::optional<bool>& value);
  void Set(const char* key, const std::optional<int64_t>& value);
  void Set(const char* key, const std::optional<double>& value);
  void Set(const char* key, const std::vector<double>& value);
  void Set(const char* key, const std::vector<std::string>& value);
  void Set(const char* key, const Integers& value);
  void Set(const char* key, const Named& value);
  void Set(const char* key, const Layer& value);
  void Set(const char* key, const std::vector<Layer>& value);
  // Sets an argument that has a fixed set of words as values; "" stands for null.
  void SetChoice(const char* key, const std::string& value);
  // Sets a list of pairs from a flat list of numbers.
  void SetPairs(const char* key, const Integers& value);
  // Sets a margin: one number, one number per axis, or two numbers per axis.
  void SetMargins(const char* key, const Integers& value, size_t axes);
  // Sets sizes; -1 stands for null.
  void SetSizes(const char* key, const Integers& value);

  // Returns the first error in an argument (a layer with an error, or a number that is not finite),
  // or OK.
  const tfjob::Status& error() const { return error_; }
  FormData& data() { return data_; }

 private:
  FormData data_;
  tfjob::Status error_;
};

}  // namespace tfjob::api
