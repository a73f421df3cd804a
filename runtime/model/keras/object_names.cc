#include "runtime/model/keras/object_names.h"

#include <vector>

namespace tfjob::keras {
namespace {

// Returns the names under which a variable may have been saved, in order of preference.
std::vector<std::string> SavedNames(const model::Model& model, const std::string& name) {
  std::vector<std::string> names = {name, StrCat(model.name, "/", name)};
  // Remove the names of nested models one by one, but keep the names of the layer and the variable.
  for (size_t slash = name.find('/'); slash != std::string::npos && slash < name.rfind('/');
       slash = name.find('/', slash + 1)) {
    names.push_back(name.substr(slash + 1));
  }
  return names;
}

}  // namespace

std::map<std::string, std::string> MatchObjectNames(
    const model::Model& model, std::span<const model::VariableSpec> variables,
    const std::map<std::string, std::string>& saved) {
  std::map<std::string, std::vector<std::string>> claims;  // saved name → matching variables
  for (const model::VariableSpec& variable : variables) {
    for (const std::string& name : SavedNames(model, variable.name)) {
      if (!saved.contains(name)) continue;
      claims[name].push_back(variable.name);
      break;
    }
  }
  std::map<std::string, std::string> found;
  for (const auto& [name, claimants] : claims) {
    if (claimants.size() == 1) found[claimants[0]] = saved.at(name);
  }
  return found;
}

}  // namespace tfjob::keras
