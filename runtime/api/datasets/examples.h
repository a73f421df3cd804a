// Converts between the examples of programs, whose values are named after layers, and those of
// sources, whose values are named after the graph's feeds (model/build.h). Private to this package.
#pragma once

#include <functional>

#include "runtime/api/access.h"
#include "runtime/data/operators/example.h"

namespace tfjob::api {

// The names of one model's inputs and outputs. Immutable.
class ExampleNames {
 public:
  explicit ExampleNames(const model::Model& model);

  // Converts the values that are present. Returns InvalidArgument if the model has no input or
  // output with the name of a value. A value without a name is also InvalidArgument if the model
  // has several inputs (or outputs), or if the example also has values with names.
  StatusOr<tfjob::data::Example> ToInternal(const data::Example& example) const;
  data::Example ToPublic(const tfjob::data::Example& example) const;

 private:
  // The model's inputs, its labels or its sample weights.
  struct Role {
    const char* word;              // "x"
    const char* words;             // "inputs"
    Tensor data::Example::* only;  // the value that needs no name
    std::map<std::string, Tensor> data::Example::* named;
    std::vector<std::string> layers;  // the names that programs use
    std::vector<std::string> feeds;
  };
  static tfjob::Status AddRole(const Role& role, const data::Example& example,
                               tfjob::data::Example& made);

  std::vector<Role> roles_;
};

}  // namespace tfjob::api
