#include "runtime/strategy/model/table_rows.h"

#include <algorithm>

namespace tfjob::strategy {

StatusOr<std::unique_ptr<TableRows>> TableRows::Compile(const ModelDefinition& definition,
                                                        const model::BuiltGraph& built,
                                                        const exec::Device& device) {
  std::unique_ptr<TableRows> rows(new TableRows());
  ASSIGN_OR_RETURN(rows->program_, exec::Compile(built.table_ids, rows->none_, device));
  rows->feeds_.resize(rows->program_->feeds().size());
  rows->table_of_variable_.assign(definition.variables.size(), -1);
  for (const graph::RowTable& separate : built.tables) {
    Table table{.variable = separate.variable,
                .rows_feed = separate.rows,
                .rows = separate.type.shape.dim(0)};
    int64_t ids = 0;
    for (const graph::Lookup& lookup : separate.lookups) {
      const int fetch = rows->program_->FindFetch(lookup.ids);
      const Shape& shape = rows->program_->fetches()[static_cast<size_t>(fetch)].type.shape;
      ids += shape.num_elements();
      table.lookups.push_back({lookup.op, fetch, lookup.places, Tensor(DType::kInt64, shape)});
    }
    table.values = Tensor(separate.type.dtype, {ids, separate.type.shape.dim(1)});
    table.indices.assign(static_cast<size_t>(ids), -1);
    table.sorted.reserve(static_cast<size_t>(ids));
    const auto spec =
        std::ranges::find(definition.variables, separate.variable, &model::VariableSpec::name);
    rows->table_of_variable_[static_cast<size_t>(spec - definition.variables.begin())] =
        static_cast<int>(rows->tables_.size());
    rows->tables_.push_back(std::move(table));
  }
  return rows;
}

Status TableRows::Find(const data::Batch& batch, int64_t step, int64_t seed) {
  step_ = step;
  seed_ = seed;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    const std::string& name = program_->feeds()[i].name;
    if (name == model::kStep) feeds_[i] = exec::Feed::Of(step_);
    if (name == model::kSeed) feeds_[i] = exec::Feed::Of(seed_);
    if (const Tensor* fed = batch.Find(name)) feeds_[i] = exec::Feed::Of(*fed);
  }
  RETURN_IF_ERROR(program_->Run(feeds_));
  for (Table& table : tables_) {
    RETURN_IF_ERROR(Collect(table));
    Number(table);
  }
  return OkStatus();
}

template <typename Visit>
void TableRows::ForIds(const Lookup& lookup, const Visit& visit) const {
  const auto each = [&](const auto& ids) {
    for (size_t i = 0; i < ids.size(); ++i)
      visit(static_cast<int64_t>(ids[i]), static_cast<int64_t>(i));
  };
  const DType dtype = program_->fetches()[static_cast<size_t>(lookup.ids)].type.dtype;
  if (dtype == DType::kInt32) {
    each(program_->Fetch<int32_t>(lookup.ids));
  } else {
    each(program_->Fetch<int64_t>(lookup.ids));
  }
}

Status TableRows::Collect(Table& table) const {
  table.sorted.clear();
  for (const Lookup& lookup : table.lookups) {
    Status status;
    const auto begin = static_cast<int64_t>(table.sorted.size());
    ForIds(lookup, [&](int64_t id, int64_t position) {
      if ((id < 0 || id >= table.rows) && status.ok()) {
        status = InvalidArgument(lookup.op, ": id ", id, " at position ", position,
                                 " of the batch is no row of ", table.variable, ": expected 0 to ",
                                 table.rows - 1);
      }
      table.sorted.emplace_back(id, begin + position);
    });
    RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

// Lists the distinct ids, and writes the position of each id in this list to `places`.
void TableRows::Number(Table& table) {
  std::ranges::sort(table.sorted);
  std::ranges::fill(table.indices, -1);
  const auto place_at = [&](int64_t position) -> int64_t& {
    size_t lookup = 0;
    for (; position >= table.lookups[lookup].places.shape().num_elements(); ++lookup)
      position -= table.lookups[lookup].places.shape().num_elements();
    return table.lookups[lookup].places.data<int64_t>()[static_cast<size_t>(position)];
  };
  int64_t place = -1;
  for (const auto& [id, position] : table.sorted) {
    if (place < 0 || table.indices[static_cast<size_t>(place)] != id)
      table.indices[static_cast<size_t>(++place)] = id;
    place_at(position) = place;
  }
}

std::span<const int64_t> TableRows::Indices(int v) const {
  const int table = table_of_variable_[static_cast<size_t>(v)];
  if (table < 0) return {};
  return tables_[static_cast<size_t>(table)].indices;
}

std::span<std::byte> TableRows::Values(int v) {
  const int table = table_of_variable_[static_cast<size_t>(v)];
  if (table < 0) return {};
  return tables_[static_cast<size_t>(table)].values.bytes();
}

void TableRows::SetFeeds(const exec::Program& program, std::span<exec::Feed> feeds) const {
  const auto set = [&](const std::string& name, const Tensor& value) {
    const int feed = program.FindFeed(name);
    if (feed >= 0) feeds[static_cast<size_t>(feed)] = exec::Feed::Of(value);
  };
  for (const Table& table : tables_) {
    set(table.rows_feed, table.values);
    for (const Lookup& lookup : table.lookups) set(lookup.places_feed, lookup.places);
  }
}

}  // namespace tfjob::strategy
