// Converts examples between the form that programs use and the form that sources use. Programs name
// values after layers, whereas sources name them after the graph's feeds (model/build.h). Private
// to this package.
#pragma once

#include <functional>

#include "runtime/api/access.h"
#include "runtime/data/operators/example.h"

namespace tfjob::api {

// The names of one model's inputs and outputs. Immutable.
class ExampleNames {
 public:
  explicit ExampleNames(const model::Model& model);

  // Returns the values that the example has, under the names that sources use. Returns
  // InvalidArgument if the model has no input or output with the name of a value. Also returns
  // InvalidArgument for a value without a name if the model has several inputs (or outputs), or if
  // other values of the example have names.
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
