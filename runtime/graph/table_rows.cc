#include "runtime/graph/table_rows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/graph/op.h"

namespace tfjob::graph {
namespace {

bool Reads(const Node& node) {
  return FindOp(node.op)->effect == Effect::kRead;
}

std::string VariableOf(const Node& node) {
  return node.attributes.Get("variable", std::string());
}

// Returns one flag per node: whether the node depends on a variable.
std::vector<bool> DependOnVariables(const Graph& graph) {
  std::vector<bool> depends;
  for (const Node& node : graph.nodes()) {
    depends.push_back(Reads(node) || std::ranges::any_of(node.inputs, [&](Output input) {
                        return depends[static_cast<size_t>(input.node)];
                      }));
  }
  return depends;
}

// Lists the uses of one variable: its reads, its writes and the Gathers from it.
struct TableUses {
  std::vector<int> reads;
  std::vector<int> gathers;
  bool others = false;  // whether the variable has any other use
};

// Returns how the graph uses each variable.
std::map<std::string, TableUses> TableUsesOf(const Graph& graph) {
  const std::vector<bool> depends = DependOnVariables(graph);
  std::map<std::string, TableUses> all;
  const auto read_by = [&](Output input) -> TableUses* {
    return Reads(graph.node(input)) ? &all[VariableOf(graph.node(input))] : nullptr;
  };
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (Reads(node)) all[VariableOf(node)].reads.push_back(id);
    if (FindOp(node.op)->effect == Effect::kWrite) all[VariableOf(node)].others = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      TableUses* uses = read_by(node.inputs[i]);
      if (uses == nullptr) continue;
      const bool row =
          node.op == "Gather" && i == 0 && !depends[static_cast<size_t>(node.inputs[1].node)];
      if (row) uses->gathers.push_back(id);
      if (!row) uses->others = true;
    }
  }
  for (const Fetch& fetch : graph.fetches()) {
    if (TableUses* uses = read_by(fetch.output)) uses->others = true;
  }
  return all;
}

bool Separable(const Graph& graph, const TableUses& uses) {
  return !uses.others && !uses.gathers.empty() && graph.type({uses.reads[0], 0}).shape.rank() == 2;
}

// Builds a graph from selected nodes of another graph.
class Copier {
 public:
  explicit Copier(const Graph& from) : from_(from), now_(from.nodes().size(), -1) {}

  Output Now(Output old) const { return {now_[static_cast<size_t>(old.node)], old.index}; }
  void Copy(int id) {
    Node node = from_.node(id);
    for (Output& input : node.inputs) input = Now(input);
    Put(id, std::move(node));
  }
  // Appends a node to the new graph in place of the old node `id`.
  void Put(int id, Node node) { now_[static_cast<size_t>(id)] = to.Append(std::move(node)); }
  Output AppendFeed(const std::string& name, TensorType type) {
    Node node{.op = "Placeholder",
              .name = name,
              .inputs = {},
              .attributes = {{"dtype", type.dtype}, {"shape", type.shape}},
              .outputs = {type},
              .device = ""};
    return {to.Append(std::move(node)), 0};
  }

  Graph to;

 private:
  const Graph& from_;
  std::vector<int> now_;
};

// Returns a graph that computes only the values of `fetches`.
Graph GraphOf(const Graph& graph, const std::vector<Fetch>& fetches) {
  std::vector<bool> needed(graph.nodes().size());
  for (const Fetch& fetch : fetches) needed[static_cast<size_t>(fetch.output.node)] = true;
  for (size_t id = needed.size(); id-- > 0;) {
    if (!needed[id]) continue;
    for (Output input : graph.nodes()[id].inputs) needed[static_cast<size_t>(input.node)] = true;
  }
  Copier copier(graph);
  for (size_t id = 0; id < needed.size(); ++id) {
    if (needed[id]) copier.Copy(static_cast<int>(id));
  }
  for (const Fetch& fetch : fetches) copier.to.AddFetch({fetch.name, copier.Now(fetch.output)});
  return std::move(copier.to);
}

// Describes a table that is to be separated, and adds the fetches for its ids.
RowTable Describe(const Graph& graph, const std::string& variable, const TableUses& uses,
                  std::vector<Fetch>& ids) {
  RowTable table{.variable = variable,
                 .type = graph.type({uses.reads[0], 0}),
                 .rows = StrCat("rows/", variable),
                 .lookups = {}};
  for (const int gather : uses.gathers) {
    const std::string number = StrCat(table.lookups.size());
    table.lookups.push_back({.op = graph.node(gather).name,
                             .ids = StrCat("ids/", variable, "/", number),
                             .places = StrCat("places/", variable, "/", number)});
    ids.push_back({table.lookups.back().ids, graph.node(gather).inputs[1]});
  }
  return table;
}

// Returns the type of the rows that are fed: one row for each id of each lookup.
TensorType RowsType(const Graph& graph, const RowTable& table, const TableUses& uses) {
  int64_t rows = 0;
  for (const int gather : uses.gathers)
    rows += graph.type(graph.node(gather).inputs[1]).shape.num_elements();
  return {table.type.dtype, {rows, table.type.shape.dim(1)}};
}

// Returns the main graph: `graph`, changed so that the rows of `tables` are fed to it.
Graph WithoutTables(const Graph& graph, const std::vector<RowTable>& tables,
                    const std::map<std::string, TableUses>& uses) {
  Copier copier(graph);
  std::map<int, Output> rows_of_gather;
  std::map<int, std::string> places_of_gather;
  std::vector<bool> dropped(graph.nodes().size());
  for (const RowTable& table : tables) {
    const TableUses& own = uses.at(table.variable);
    const Output rows = copier.AppendFeed(table.rows, RowsType(graph, table, own));
    for (const int read : own.reads) dropped[static_cast<size_t>(read)] = true;
    for (size_t i = 0; i < own.gathers.size(); ++i) {
      rows_of_gather[own.gathers[i]] = rows;
      places_of_gather[own.gathers[i]] = table.lookups[i].places;
    }
  }
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    if (dropped[static_cast<size_t>(id)]) continue;
    const auto gather = rows_of_gather.find(id);
    if (gather == rows_of_gather.end()) {
      copier.Copy(id);
      continue;
    }
    Node node = graph.node(id);
    const Shape count = graph.type(node.inputs[1]).shape;
    const Output places = copier.AppendFeed(places_of_gather[id], {DType::kInt64, count});
    node.inputs = {gather->second, places};
    copier.Put(id, std::move(node));
  }
  for (const Fetch& fetch : graph.fetches())
    copier.to.AddFetch({fetch.name, copier.Now(fetch.output)});
  return std::move(copier.to);
}

}  // namespace

std::vector<std::string> SeparableTables(const Graph& graph) {
  std::vector<std::string> tables;
  for (const auto& [variable, uses] : TableUsesOf(graph)) {
    if (Separable(graph, uses)) tables.push_back(variable);
  }
  return tables;
}

StatusOr<SeparatedGraph> SeparateTables(const Graph& graph,
                                        const std::vector<std::string>& variables) {
  const std::map<std::string, TableUses> uses = TableUsesOf(graph);
  SeparatedGraph separated;
  std::vector<Fetch> ids;
  for (const std::string& variable : variables) {
    const auto found = uses.find(variable);
    if (found == uses.end() || !Separable(graph, found->second))
      return InvalidArgument("variable ", variable, " is no table of which the graph reads rows");
    separated.tables.push_back(Describe(graph, variable, found->second, ids));
  }
  separated.ids = GraphOf(graph, ids);
  separated.graph = WithoutTables(graph, separated.tables, uses);
  return separated;
}

}  // namespace tfjob::graph
