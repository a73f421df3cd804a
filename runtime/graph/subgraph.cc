#include "runtime/graph/subgraph.h"

#include "absl/strings/str_replace.h"

namespace tfjob::graph {

const Graph* Subgraph::Find(const Attributes& attributes, std::string_view name) {
  const GraphPointer* found = attributes.Find<GraphPointer>(name);
  if (found == nullptr) return nullptr;
  const auto* subgraph = dynamic_cast<const Subgraph*>(found->get());
  return subgraph == nullptr ? nullptr : &subgraph->graph_;
}

std::string Subgraph::ToString() const {
  return "{" + absl::StrReplaceAll("\n" + graph_.ToString(), {{"\n", "\n    "}}) + "}";
}

bool Subgraph::Equals(const GraphAttribute& other) const {
  const auto* subgraph = dynamic_cast<const Subgraph*>(&other);
  return subgraph != nullptr && subgraph->graph_ == graph_;
}

}  // namespace tfjob::graph
