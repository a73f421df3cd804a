// Defines the cells of recurrent layers, and RNN, a layer that consists of cells.
#pragma once

#include <memory>
#include <vector>

#include "runtime/model/layers/recurrent.h"
#include "runtime/model/model.h"

namespace tfjob::model::layers {

// A cell: one step of the recurrent layer of the same kind. A cell cannot be called by itself; RNN
// runs it.
template <CellKind kKind>
struct Cell {
  static constexpr std::string_view kClass = kKind == CellKind::kSimpleRNN ? "SimpleRNNCell"
                                             : kKind == CellKind::kLSTM    ? "LSTMCell"
                                                                           : "GRUCell";
  RecurrentArguments arguments = {.kind = kKind};

  void Arguments(ArgumentVisitor& visitor) { arguments.VisitCell(visitor); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

using SimpleRNNCell = Cell<CellKind::kSimpleRNN>;
using LSTMCell = Cell<CellKind::kLSTM>;
using GRUCell = Cell<CellKind::kGRU>;

// A stack of cells, each of which takes the output of the cell before it. Like a single cell, a
// stack cannot be called.
struct StackedRNNCells {
  static constexpr std::string_view kClass = "StackedRNNCells";
  std::vector<std::shared_ptr<const Layer>> cells;

  void Arguments(ArgumentVisitor& visitor) { visitor.WrappedList("cells", cells); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

// Runs its cell, or its stack of cells, over sequences [steps,features]. The layer's states are
// those of the first cell, then those of the second, and so on.
struct RNN {
  static constexpr std::string_view kClass = "RNN";
  std::shared_ptr<const Layer> cell;
  bool return_sequences = false, return_state = false, go_backwards = false;
  bool zero_output_for_mask = false;
  RecurrentInputs inputs = {};

  void Arguments(ArgumentVisitor& visitor);
  void CallArguments(CallVisitor& visitor) { inputs.Visit(visitor); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;

  // Returns the cells in their order.
  std::vector<const Layer*> Cells() const;
};

// Returns the arguments of a layer that is a cell, and null for any other.
const RecurrentArguments* CellArguments(const Layer& layer);

}  // namespace tfjob::model::layers
