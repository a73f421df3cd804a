// Finds the rows of tables that a batch reads, for programs to which the tables are not available
// (ModelDefinition::tables). Stores the values of these rows while the program runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/exec/program.h"
#include "runtime/strategy/model/model_definition.h"

namespace tfjob::strategy {

// Owned by one thread.
class TableRows {
 public:
  // Compiles the program that computes the ids of a batch.
  static StatusOr<std::unique_ptr<TableRows>> Compile(const ModelDefinition& definition,
                                                      const model::BuiltGraph& built,
                                                      const exec::Device& device);

  // Finds the rows that the batch reads. `step` and `seed` must be those of the run that follows.
  // Returns InvalidArgument, with the same message as Gather, if an id is outside the table.
  // Allocates no memory.
  Status Find(const data::Batch& batch, int64_t step, int64_t seed);

  // Returns the indices of the rows of variable `v` that Find has found: distinct, ascending, and
  // padded with -1 at the end. Empty if the variable is not a table. The length and the address
  // never change.
  std::span<const int64_t> Indices(int v) const;
  // Returns the memory for the values of these rows. The caller fills it before the run.
  std::span<std::byte> Values(int v);

  // Sets a program's feeds: the values of the rows and, for each id of a lookup, the position of
  // its row among these values. The addresses of the feeds never change.
  void SetFeeds(const exec::Program& program, std::span<exec::Feed> feeds) const;

 private:
  struct Lookup {
    std::string op;
    int ids = -1;  // index of the fetch of program_
    std::string places_feed;
    Tensor places;  // int64
  };
  struct Table {
    std::string variable, rows_feed;
    int64_t rows = 0;  // of the whole table
    std::vector<Lookup> lookups;
    Tensor values;
    std::vector<int64_t> indices;
    std::vector<std::pair<int64_t, int64_t>> sorted;  // scratch: each id and its position
  };
  TableRows() = default;
  Status Collect(Table& table) const;
  // Calls visit(id, position) for each id of a lookup.
  template <typename Visit>
  void ForIds(const Lookup& lookup, const Visit& visit) const;
  static void Number(Table& table);

  variables::VariableStore none_;  // the program reads no variables
  std::unique_ptr<exec::Program> program_;
  std::vector<exec::Feed> feeds_;
  std::vector<Table> tables_;
  std::vector<int> table_of_variable_;  // -1 if none
  int64_t step_ = 0, seed_ = 0;
};

}  // namespace tfjob::strategy
