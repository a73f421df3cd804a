// Defines models. A model consists of layers and their connections, without the values of the
// variables.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "layer.h"
#include "status.h"

namespace tfjob::api {

struct ModelData;

// A graph or a chain of layers. Immutable and cheap to copy.
class Model {
 public:
  Model();  // not a model: its status is an error
  // Moving a Model copies it, so a moved-from Model can still be used.
  Model(const Model&) = default;
  Model& operator=(const Model&) = default;
  // Reads a model saved by Keras or this library: JSON from Model.to_json(), a .keras file, or an
  // .h5 file with a whole model. If the file has weights, they are the initial values of the
  // variables, even if the model becomes part of another one. The weights are read immediately if
  // the model states the shapes of its inputs, or else as soon as the shapes are known.
  // Session::Load also reads the settings of compile().
  static Result<Model> Load(const std::string& path);

  // Returns the error that makes the model unusable, or OK. Functions that take the model return
  // the same error.
  const Status& status() const&;
  Status status() && { return std::as_const(*this).status(); }
  const std::string& name() const&;
  std::string name() && { return std::as_const(*this).name(); }

  // Returns a copy in which layers are not trained if their names match one of the patterns, such
  // as "conv_*", or "encoder/*" for the layers of the model "encoder" inside this one. The same
  // applies to single variables whose full names match, such as "dense_1/kernel" or "*/bias". Files
  // contain this setting for layers only, and GetLayer returns layers without frozen variables. If
  // a pattern matches nothing, the status of the copy is an error or, if the model does not state
  // the shapes of its inputs, so are the results of calls that receive data.
  Model Frozen(const std::vector<std::string>& patterns) const;

  // Returns a copy that needs less memory in training: layers whose names match one of the patterns
  // keep only their outputs, and are recomputed in the backward pass. A nested model that matches
  // is recomputed as a whole. Files do not contain this setting.
  Model Recomputed(const std::vector<std::string>& patterns) const;

  // Returns a copy in which this dtype policy applies to all layers without a policy: "float32",
  // "mixed_bfloat16" or "mixed_float16", as in Keras. Layers made with the API have no policy;
  // layers that Load has read from a file have one. If all layers have a policy, the status of the
  // copy is an error. With "mixed_float16", only Fit can train the model, and not with parameter
  // servers.
  Model WithDTypePolicy(const std::string& policy) const;

  // Returns the layer with this name, with its settings and, if a file has provided them, the
  // values of its variables. In another model, the layer has variables of its own. Returns
  // NotFound, with the names of the layers, if there is no such layer.
  Result<Layer> GetLayer(const std::string& name) const;

  // Returns a table with the shape and the number of parameters of each layer. Returns
  // InvalidArgument if the model does not state the shapes of its inputs.
  Result<std::string> Summary() const;
  // Returns Keras' JSON, which keras.models.model_from_json reads.
  Result<std::string> ToJson() const;

  // Returns a model with the same layers, but new variables, as keras.models.clone_model does. The
  // clone does not use weights from a file as initial values.
  Model Clone() const;

  // Calls the model as a layer of another model. As in Keras, all calls share the model's
  // variables, but `model.Clone()(x)` has new ones.
  Symbol operator()(const Symbols& inputs) const { return Layer(*this)(inputs); }

 private:
  friend struct Access;
  explicit Model(std::shared_ptr<const ModelData> data) : data_(std::move(data)) {}

  std::shared_ptr<const ModelData> data_;
};

// Returns a model whose layers form a chain. Each layer may occur only once.
Model Sequential(const std::vector<Layer>& layers, const std::string& name = "sequential");

// Returns the model that computes `outputs` from `inputs`. Every Input that an output depends on
// must be in `inputs`. Layers without a name get names as in Keras: dense, dense_1, …, in the order
// in which the outputs depend on them.
Model Functional(const Symbols& inputs, const Symbols& outputs,
                 const std::string& name = "functional");

}  // namespace tfjob::api
