// Defines the model that a job trains: its layers, the shape of its batches, its loss and metrics,
// its variables and their optimizer. Unless noted otherwise, the definition is the same in every
// task of the job.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/model/build.h"
#include "runtime/state/snapshot.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::strategy {

struct ModelDefinition {
  model::Model model;
  // The options of every graph, except for mode, batch_size and optimizer, which BuildGraph sets.
  // Only `replica` differs between tasks.
  model::BuildOptions build;
  state::TrainingState state;                  // its variables are in the model's order
  std::vector<model::VariableSpec> variables;  // same order as state.variables
  int64_t seed = 0;
  // The tables that are not stored in this task. Programs are instead fed the rows that a batch
  // reads, and CreateVariables and LoadValues skip these variables. Contains indices in
  // `variables`, in ascending order. Empty unless a strategy has chosen some of SeparableTables.
  std::vector<int> tables = {};
};

bool IsTable(const ModelDefinition& definition, size_t variable);

// Returns the indices, in ascending order, of the variables with more than `least_bytes` bytes from
// which programs for `mode` read only individual rows.
StatusOr<std::vector<int>> SeparableTables(const ModelDefinition& definition, model::Mode mode,
                                           int64_t least_bytes);

// Fills `variables` and `state.variables` from the model and `build`, and finds the masks of the
// outputs (model::FindMasks). Returns InvalidArgument, with a message that names the layers, if
// layers have incompatible shapes.
Status DefineVariables(ModelDefinition& definition);

// Returns the initial value of every variable and every slot, at step 0. `streamed` lists the
// indices of variables in ascending order. Their values are streamed, that is, generated when they
// are read, unless the initializer needs the whole value (Orthogonal).
state::Snapshot InitialState(const ModelDefinition& definition, std::span<const int> streamed = {});

// Builds the graph for a mode and batch size. If `with_updates` is set (kTrain only), the graph
// also applies the optimizer.
StatusOr<model::BuiltGraph> BuildGraph(const ModelDefinition& definition, model::Mode mode,
                                       int64_t batch_size, bool with_updates);

// Returns the name of the first op that the replicas of a training step use to exchange values
// (exec/exchange.h): "batch_normalization/AllReduceMean". Returns "" if there is none.
StatusOr<std::string> FirstExchange(const ModelDefinition& definition);

// Creates the definition's variables in `store`, filled with zeros. Returns ResourceExhausted, and
// creates none, if they do not fit into memory together.
Status CreateVariables(const ModelDefinition& definition, variables::VariableStore& store);
// Copies the values of a snapshot, but not its slots, into the variables of `store`. Propagates the
// error if a streamed value cannot be read.
Status LoadValues(const ModelDefinition& definition, const state::Snapshot& snapshot,
                  variables::VariableStore& store);

}  // namespace tfjob::strategy
