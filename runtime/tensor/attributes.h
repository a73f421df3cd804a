// Stores the attributes of an op by name. Attributes are the op's settings, which do not depend on
// the values of its inputs. Graph nodes have attributes, from which kernels are prepared. A value
// type. Its entries are ordered by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"

namespace tfjob {

// A graph as an attribute, such as the body of a loop (graph/subgraph.h). Immutable.
class GraphAttribute {
 public:
  virtual ~GraphAttribute() = default;
  virtual std::string ToString() const = 0;
  virtual bool Equals(const GraphAttribute& other) const = 0;
};
using GraphPointer = std::shared_ptr<const GraphAttribute>;

using AttributeValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>, DType,
                                    Shape, Tensor, GraphPointer>;

class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, AttributeValue>> values)
      : values_(values) {}

  void Set(std::string_view name, AttributeValue value) {
    values_.insert_or_assign(std::string(name), std::move(value));
  }

  // Returns the value, or null if there is no such attribute or it has a different type.
  template <typename T>
  const T* Find(std::string_view name) const {
    auto found = values_.find(name);
    return found == values_.end() ? nullptr : std::get_if<T>(&found->second);
  }
  // Returns the value, or `otherwise` if there is no such attribute or if it has a different type.
  template <typename T>
  T Get(std::string_view name, T otherwise) const {
    const T* value = Find<T>(name);
    return value == nullptr ? otherwise : *value;
  }

  const std::map<std::string, AttributeValue, std::less<>>& values() const { return values_; }

  // Returns `rate=0.5, shape=[2,3], transpose_a=true`. A tensor is printed as its dtype, shape and
  // first 8 elements, and a graph as lines in braces. The output is stable.
  std::string ToString() const;

  // Tensors are equal if their dtypes, shapes and bytes are equal, and graphs if they have the same
  // nodes and fetches.
  bool operator==(const Attributes& other) const;

 private:
  std::map<std::string, AttributeValue, std::less<>> values_;
};

}  // namespace tfjob
