#include "runtime/ps/definition.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/base/fnv1a.h"
#include "runtime/base/json.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/ps/placement.h"
#include "runtime/tensor/half.h"
#include "runtime/tensor/shape.h"

namespace tfjob::ps {
namespace {

StatusOr<state::Variable> ParseVariable(const JsonField& json) {
  state::Variable result;
  ASSIGN_OR_RETURN(result.name, json["name"].String());
  ASSIGN_OR_RETURN(std::string dtype, json["dtype"].String());
  std::optional<DType> known = ParseDType(dtype);
  if (!known || IsHalf(*known)) return json["dtype"].Mismatch("the element type of a variable");
  result.dtype = *known;
  ASSIGN_OR_RETURN(auto dims, json["shape"].Elements());
  std::vector<int64_t> shape;
  for (const JsonField& dim : dims) {
    ASSIGN_OR_RETURN(int64_t value, dim.Int());
    shape.push_back(value);
  }
  result.shape = Shape(std::move(shape));
  ASSIGN_OR_RETURN(int64_t update, json["update"].Int());
  if (update < 0 || update > 2) return json["update"].Mismatch("0, 1 or 2");
  result.update = static_cast<state::Update>(update);
  if (json["constraint"].present()) {
    ASSIGN_OR_RETURN(result.constraint, optimizer::ParseConstraint(json["constraint"]));
  }
  return result;
}

Json ToJson(const std::vector<state::TaskId>& tasks) {
  Json array = Json::array();
  for (const state::TaskId& task : tasks)
    array.push_back({{"type", task.type}, {"index", task.index}});
  return array;
}

Json ToJson(const Definition& definition) {
  Json variables = Json::array();
  for (const state::Variable& variable : definition.state.variables) {
    variables.push_back({{"name", variable.name},
                         {"dtype", std::string(Name(variable.dtype))},
                         {"shape", variable.shape.dims()},
                         {"update", static_cast<int>(variable.update)}});
    if (variable.constraint.present())
      variables.back()["constraint"] = optimizer::ToJson(variable.constraint);
  }
  Json json = {{"variables", std::move(variables)},
               {"optimizer", optimizer::ToJson(definition.state.optimizer)},
               {"mode", static_cast<int>(definition.mode)},
               {"replicas_to_aggregate", definition.replicas_to_aggregate},
               {"placement", static_cast<int>(definition.placement)},
               {"max_shard_bytes", definition.max_shard_bytes}};
  if (!definition.tasks.empty()) json["tasks"] = ToJson(definition.tasks);
  const int64_t timeout = definition.start_timeout.count();
  if (timeout != 0) json["start_timeout_us"] = timeout;
  const optimizer::Clipping& clipping = definition.clipping;
  if (clipping.kind != optimizer::ClipKind::kNone) {
    json["clipping"] = {{"kind", static_cast<int>(clipping.kind)}, {"limit", clipping.limit}};
  }
  if (!definition.row_gradients.empty()) json["row_gradients"] = definition.row_gradients;
  if (!definition.tables.empty()) json["tables"] = definition.tables;
  return json;
}

StatusOr<std::vector<int>> ParseIndices(const JsonField& json) {
  std::vector<int> variables;
  if (!json.present()) return variables;
  ASSIGN_OR_RETURN(auto elements, json.Elements());
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(variables.emplace_back(), element.Int32());
  }
  return variables;
}

StatusOr<std::vector<state::TaskId>> ParseTasks(const JsonField& json) {
  std::vector<state::TaskId> tasks;
  if (!json.present()) return tasks;
  ASSIGN_OR_RETURN(auto elements, json.Elements());
  for (const JsonField& element : elements) {
    state::TaskId& task = tasks.emplace_back();
    ASSIGN_OR_RETURN(task.type, element["type"].String());
    ASSIGN_OR_RETURN(task.index, element["index"].Int32());
  }
  return tasks;
}

StatusOr<optimizer::Clipping> ParseClipping(const JsonField& json) {
  optimizer::Clipping result;
  if (!json.present()) return result;
  ASSIGN_OR_RETURN(int64_t kind, json["kind"].Int());
  if (kind < 0 || kind > static_cast<int>(optimizer::ClipKind::kGlobalNorm)) {
    return json["kind"].Mismatch("0 to 3");
  }
  result.kind = static_cast<optimizer::ClipKind>(kind);
  ASSIGN_OR_RETURN(result.limit, json["limit"].Double());
  return result;
}

StatusOr<Definition> ParseDefinition(const JsonField& root) {
  Definition result;
  ASSIGN_OR_RETURN(auto variables, root["variables"].Elements());
  for (const JsonField& json : variables) {
    ASSIGN_OR_RETURN(state::Variable variable, ParseVariable(json));
    result.state.variables.push_back(std::move(variable));
  }
  ASSIGN_OR_RETURN(result.state.optimizer, optimizer::ParseOptimizer(root["optimizer"]));
  ASSIGN_OR_RETURN(int64_t mode, root["mode"].Int());
  if (mode < 0 || mode > 1) return root["mode"].Mismatch("0 or 1");
  result.mode = static_cast<Mode>(mode);
  ASSIGN_OR_RETURN(result.replicas_to_aggregate, root["replicas_to_aggregate"].Int32());
  ASSIGN_OR_RETURN(result.tasks, ParseTasks(root["tasks"]));
  ASSIGN_OR_RETURN(int64_t start_timeout, root["start_timeout_us"].IntOr(0));
  result.start_timeout = Duration(start_timeout);
  ASSIGN_OR_RETURN(result.clipping, ParseClipping(root["clipping"]));
  ASSIGN_OR_RETURN(int64_t placement, root["placement"].Int());
  if (placement < 0 || placement > 1) return root["placement"].Mismatch("0 or 1");
  result.placement = static_cast<Placement>(placement);
  ASSIGN_OR_RETURN(result.max_shard_bytes, root["max_shard_bytes"].Int());
  ASSIGN_OR_RETURN(result.row_gradients, ParseIndices(root["row_gradients"]));
  ASSIGN_OR_RETURN(result.tables, ParseIndices(root["tables"]));
  RETURN_IF_ERROR(Validate(result));
  return result;
}

// Names appear in logs and as keys of maps, so they must be short and contain only plain
// characters, as in the handshake.
bool IsTask(const state::TaskId& task) {
  return !task.type.empty() && task.type.size() <= 63 && task.index >= 0 &&
         std::ranges::all_of(task.type, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

Status ValidateTasks(const Definition& definition) {
  if (definition.tasks.size() > kMaxTrainingTasks) {
    return InvalidArgument("tasks: expected at most ", kMaxTrainingTasks, ", got ",
                           definition.tasks.size());
  }
  for (const state::TaskId& task : definition.tasks) {
    if (!IsTask(task)) return InvalidArgument("tasks: '", task.type, " ", task.index, "'");
  }
  if (definition.start_timeout < Duration(0) || definition.start_timeout > kMaxStartTimeout) {
    return InvalidArgument("start_timeout: expected 0 s to ", FormatDuration(kMaxStartTimeout),
                           ", got ", FormatDuration(definition.start_timeout));
  }
  return OkStatus();
}

Status ValidateClipping(const Definition& definition) {
  const optimizer::Clipping& clipping = definition.clipping;
  if (clipping.kind == optimizer::ClipKind::kNone) return OkStatus();
  if (definition.mode != Mode::kSynchronous) {
    return InvalidArgument(
        "clipping: expected none in asynchronous mode, where the tasks clip their gradients");
  }
  if (!std::isfinite(clipping.limit) || clipping.limit <= 0) {
    return InvalidArgument("clipping: expected a finite limit above 0, got ", clipping.limit);
  }
  return OkStatus();
}

// Asynchronous servers do not count steps per shard. When an option that acts every n steps is due,
// a shard may have no update.
Status ValidateOptimizer(const Definition& definition) {
  const optimizer::Optimizer& optimizer = definition.state.optimizer;
  if (definition.mode == Mode::kSynchronous) {
    const bool clips = definition.clipping.kind != optimizer::ClipKind::kNone;
    if (!clips || optimizer.gradient_accumulation_steps == 0) return OkStatus();
    return InvalidArgument(
        "optimizer.gradient_accumulation_steps: parameter servers do not clip accumulated "
        "gradients; remove it, or clipvalue, clipnorm and global_clipnorm, or train without "
        "parameter servers");
  }
  for (const auto& [name, every] :
       {std::pair{"gradient_accumulation_steps", optimizer.gradient_accumulation_steps},
        {"ema_overwrite_frequency", optimizer.ema_overwrite_frequency}}) {
    if (every == 0) continue;
    return InvalidArgument("optimizer.", name,
                           ": asynchronous parameter servers apply every gradient by itself, and "
                           "do nothing in every n-th step; set strategy.mode to sync, or remove ",
                           name);
  }
  return OkStatus();
}

bool FewShards(const Definition& definition, int64_t max_shard_bytes) {
  int64_t shards = 0;
  for (const state::Variable& variable : definition.state.variables) {
    shards += ShardCount(variable, max_shard_bytes);
    if (shards > kMaxShards) return false;
  }
  return true;
}

// Returns the smallest shard size above max_shard_bytes with which the number of shards does not
// exceed kMaxShards.
int64_t LeastShardBytes(const Definition& definition) {
  int64_t many = definition.max_shard_bytes, few = many;
  while (few < kMaxVariableBytes && !FewShards(definition, few)) {
    many = few;
    few *= 2;
  }
  while (many + 1 < few) {
    const int64_t middle = many + (few - many) / 2;
    (FewShards(definition, middle) ? few : many) = middle;
  }
  return few;
}

Status ValidateSizes(const Definition& definition) {
  int64_t shards = 0;
  for (const state::Variable& variable : definition.state.variables) {
    const std::optional<int64_t> elements = variable.shape.CheckedElements();
    const auto size = static_cast<int64_t>(SizeOf(variable.dtype));
    if (!elements || *elements > kMaxVariableBytes / size) {
      return InvalidArgument("variable ", variable.name, ": the shape ", variable.shape.ToString(),
                             " takes more than ", kMaxVariableBytes, " bytes");
    }
    shards = std::min(shards + ShardCount(variable, definition.max_shard_bytes), kMaxShards + 1);
  }
  if (shards <= kMaxShards) return OkStatus();
  if (static_cast<int64_t>(definition.state.variables.size()) > kMaxShards) {
    return InvalidArgument("expected at most ", kMaxShards, " variables, got ",
                           definition.state.variables.size());
  }
  return InvalidArgument("strategy.shard_bytes: ", definition.max_shard_bytes,
                         " would cut the variables into more than ", kMaxShards,
                         " shards: expected 0 or at least ", LeastShardBytes(definition));
}

Status ValidateIndices(const std::string& name, const std::vector<int>& indices, size_t limit) {
  int last = -1;
  for (const int index : indices) {
    if (index <= last || index >= static_cast<int>(limit)) {
      return InvalidArgument(name, ": expected ascending indices below ", limit, ", got ", index);
    }
    last = index;
  }
  return OkStatus();
}

Status ValidateRowBytes(const Definition& definition, const state::Variable& variable) {
  if (RowBytes(variable) <= definition.max_shard_bytes) return OkStatus();
  return InvalidArgument("strategy.shard_bytes: ", definition.max_shard_bytes,
                         " is less than a row of ", variable.name,
                         ", which cannot be split: expected 0 or at least ", RowBytes(variable));
}

Status ValidateRowGradients(const Definition& definition) {
  const std::vector<state::Variable>& variables = definition.state.variables;
  RETURN_IF_ERROR(ValidateIndices("row_gradients", definition.row_gradients, variables.size()));
  for (const int index : definition.row_gradients) {
    const state::Variable& variable = variables[static_cast<size_t>(index)];
    if (variable.update != state::Update::kGradient || variable.shape.rank() != 2 ||
        variable.shape.num_elements() == 0) {
      return InvalidArgument("row_gradients: variable ", variable.name,
                             " is no matrix that an optimizer changes");
    }
    RETURN_IF_ERROR(ValidateRowBytes(definition, variable));
  }
  return OkStatus();
}

Status ValidateTables(const Definition& definition) {
  const std::vector<state::Variable>& variables = definition.state.variables;
  RETURN_IF_ERROR(ValidateIndices("tables", definition.tables, variables.size()));
  for (const int index : definition.tables) {
    const state::Variable& variable = variables[static_cast<size_t>(index)];
    if (variable.shape.rank() != 2 || variable.shape.num_elements() == 0 ||
        RowBytes(variable) > kMaxTableRowBytes) {
      return InvalidArgument("tables: variable ", variable.name, " has no rows of up to ",
                             kMaxTableRowBytes, " bytes");
    }
    if (variable.update == state::Update::kGradient && !HasRowGradient(definition, index)) {
      return InvalidArgument("tables: the gradient of variable ", variable.name,
                             " does not arrive as rows");
    }
    RETURN_IF_ERROR(ValidateRowBytes(definition, variable));
  }
  return OkStatus();
}

}  // namespace

bool HasRowGradient(const Definition& definition, int variable) {
  return std::ranges::binary_search(definition.row_gradients, variable);
}

bool IsTable(const Definition& definition, int variable) {
  return std::ranges::binary_search(definition.tables, variable);
}

int64_t RowBytes(const state::Variable& variable) {
  return variable.shape.dim(1) * static_cast<int64_t>(SizeOf(variable.dtype));
}

size_t NormsOf(const Definition& definition) {
  if (definition.clipping.kind == optimizer::ClipKind::kGlobalNorm) return 1;
  const bool each = definition.clipping.kind == optimizer::ClipKind::kNorm;
  return each ? definition.state.variables.size() : 0;
}

Status Validate(const Definition& definition) {
  RETURN_IF_ERROR(state::Validate(definition.state));
  if (definition.replicas_to_aggregate < 1) {
    return InvalidArgument("replicas_to_aggregate: expected 1 or more, got ",
                           definition.replicas_to_aggregate);
  }
  if (definition.max_shard_bytes < 1) {
    return InvalidArgument("max_shard_bytes: expected 1 or more, got ", definition.max_shard_bytes);
  }
  RETURN_IF_ERROR(ValidateTasks(definition));
  RETURN_IF_ERROR(ValidateClipping(definition));
  RETURN_IF_ERROR(ValidateOptimizer(definition));
  RETURN_IF_ERROR(ValidateSizes(definition));
  RETURN_IF_ERROR(ValidateRowGradients(definition));
  return ValidateTables(definition);
}

std::string Serialize(const Assignment& assignment) {
  return PrintJson(
      {{"definition", ToJson(assignment.definition)}, {"servers", assignment.servers}});
}

StatusOr<Assignment> ParseAssignment(const std::string& bytes) {
  ASSIGN_OR_RETURN(Json document, ParseJson(bytes, "parameter definition"));
  const JsonField root(document);
  Assignment result;
  ASSIGN_OR_RETURN(result.definition, ParseDefinition(root["definition"]));
  ASSIGN_OR_RETURN(auto servers, root["servers"].Elements());
  if (servers.size() > kMaxServers) {
    return InvalidArgument("servers: expected at most ", kMaxServers, ", got ", servers.size());
  }
  for (const JsonField& server : servers) {
    ASSIGN_OR_RETURN(std::string address, server.String());
    result.servers.push_back(std::move(address));
  }
  return result;
}

uint64_t Fingerprint(const Definition& definition) {
  Json shared = ToJson(definition);
  for (const char* own : {"replicas_to_aggregate", "tasks", "start_timeout_us"}) shared.erase(own);
  return Fnv1a().Add(PrintJson(shared)).hash();
}

}  // namespace tfjob::ps
