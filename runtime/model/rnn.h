// Defines the cells of recurrent layers, and RNN, a layer that runs cells.
#pragma once

#include <memory>
#include <vector>

#include "runtime/model/layers/recurrent.h"
#include "runtime/model/model.h"

namespace tfjob::model::layers {

// Represents a cell: one step of the recurrent layer of the same kind. A cell cannot be called
// directly; RNN runs it.
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

// Represents a stack of cells, in which the output of each cell is the input of the next cell. Like
// a single cell, a stack cannot be called directly.
struct StackedRNNCells {
  static constexpr std::string_view kClass = "StackedRNNCells";
  std::vector<std::shared_ptr<const Layer>> cells;

  void Arguments(ArgumentVisitor& visitor) { visitor.WrappedList("cells", cells); }
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

// Runs a cell, or a stack of cells, over sequences [steps,features]. The states of the layer are
// those of the first cell, followed by those of the second cell, and so on.
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
  std::vector<graph::Output> Apply(LayerCall& call) const { return Outputs(call, false); }
  // Like Apply. If `flip` is set, the outputs of all steps are in reverse order.
  std::vector<graph::Output> Outputs(LayerCall& call, bool flip) const;

  // Returns the cells in order.
  std::vector<const Layer*> Cells() const;
};

// Returns the arguments of the cell, or null if the layer is not a cell.
const RecurrentArguments* CellArguments(const Layer& layer);

}  // namespace tfjob::model::layers
