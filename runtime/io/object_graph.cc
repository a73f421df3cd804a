#include "runtime/io/object_graph.h"

#include <set>

#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

constexpr char kObjectGraph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

}  // namespace

bool IsObjectBased(const BundleReader& reader) {
  return reader.Has(kObjectGraph);
}

StatusOr<std::map<std::string, std::string>> ObjectVariables(const BundleReader& reader) {
  ASSIGN_OR_RETURN(const std::string text, reader.ReadString(kObjectGraph));
  TrackableObjectGraph graph;
  if (!graph.ParseFromString(text)) return DataLoss(kObjectGraph, " is not a TrackableObjectGraph");
  std::map<std::string, std::string> variables;
  std::set<std::string> ambiguous;
  for (const auto& node : graph.nodes()) {
    for (const auto& attribute : node.attributes()) {
      if (attribute.full_name().empty() || !reader.Has(attribute.checkpoint_key())) continue;
      const auto [at, added] = variables.emplace(attribute.full_name(), attribute.checkpoint_key());
      if (!added && at->second != attribute.checkpoint_key()) ambiguous.insert(at->first);
    }
  }
  for (const std::string& name : ambiguous) variables.erase(name);
  return variables;
}

}  // namespace tfjob::io
