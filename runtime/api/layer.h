// Defines the parts of models: layers, and the values that connect the layers.
//
//   Symbol image = Input{.shape = {28, 28}};
//   Symbol hidden = Dense{.units = 128, .activation = "relu"}(Flatten{}(image));
//   Model model = Functional(image, Dense{.units = 10}(hidden));
//
// layers.h declares the layers. Errors, such as an unknown activation or two layers with
// incompatible shapes, are reported by Model::status and by every function that uses the model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tfjob::api {

class Model;
struct Input;
struct LayerData;
struct CallData;

// A value in a functional model: an input, or an output of a call of a layer. Immutable and cheap
// to copy.
class Symbol {
 public:
  // Moving a Symbol copies it, so a moved-from Symbol can still be used.
  Symbol(const Symbol&) = default;
  Symbol& operator=(const Symbol&) = default;
  // Returns another output of the call if the layer has several: Output(1) of an LSTM with
  // return_state is a state.
  Symbol Output(int index) const { return Symbol(call_, index); }

 private:
  friend struct Access;
  Symbol(std::shared_ptr<const CallData> call, int output)
      : call_(std::move(call)), output_(output) {}

  std::shared_ptr<const CallData> call_;
  int output_ = 0;
};

// One value, or several: `Dense{…}(x)`, `Concatenate{}({x, y})`.
class Symbols {
 public:
  Symbols(const Symbol& one) : values_{one} {}  // NOLINT
  // Deleted, because every conversion of an Input would create another input. Declare the input as
  // a Symbol: `Symbol x = Input{…};`, not `auto x = Input{…};`.
  Symbols(const Input&) = delete;
  Symbols(std::initializer_list<Symbol> values) : values_(values) {}   // NOLINT
  Symbols(std::vector<Symbol> values) : values_(std::move(values)) {}  // NOLINT

  const std::vector<Symbol>& values() const { return values_; }

 private:
  std::vector<Symbol> values_;
};

// A layer of any class. Immutable and cheap to copy: a copy is the same layer. Calls of the same
// Layer share its variables:
//
//   Layer shared = Dense{.units = 8};
//   Symbol left = shared(a), right = shared(b);
//
// `Dense{…}(x)` creates a layer and calls it once. A variable of type Dense cannot be called.
class Layer {
 public:
  Layer() = default;  // no layer
  // Lets the model be used as a layer of another model. All conversions of a model and of its
  // copies return the same layer.
  Layer(const Model& model);  // NOLINT: a model is a layer

  bool present() const { return data_ != nullptr; }
  // Calls the layer. The inputs are in the order of the arguments of Keras' call(): an LSTM takes
  // the input first, and then the initial states; Attention takes query, value and, optionally,
  // key.
  Symbol operator()(const Symbols& inputs) const;

 private:
  friend struct Access;
  explicit Layer(std::shared_ptr<const LayerData> data) : data_(std::move(data)) {}

  std::shared_ptr<const LayerData> data_;
};

// An input of a model. A Sequential model may start with an Input, which states the shape of the
// examples; without an Input, the data determine the shape.
struct Input {
  std::vector<int64_t> shape = {};  // of one example; -1 for a length that the data determine
  std::string dtype = "float32";    // or float64, int32, int64, uint8, bool
  std::string name = {};

  operator Layer() const;
  operator Symbol() const;
};

}  // namespace tfjob::api
