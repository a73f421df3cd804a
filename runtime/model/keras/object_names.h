// Finds a model's variables among those of an object-based checkpoint.
#pragma once

#include <map>
#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::keras {

// Returns a map from each variable's name to the value of its saved name. The keys of `saved` are
// the names that the variables had in the program that saved them; its values are arbitrary. In a
// saved name, Keras may prepend the name of the outermost model, and may omit the names of nested
// functional models: the variable inner/deep/kernel may be called inner/deep/kernel,
// outer/inner/deep/kernel or deep/kernel. Leaves out a saved name that fits several variables
// equally well, and a variable that no saved name fits.
std::map<std::string, std::string> MatchObjectNames(
    const model::Model& model, std::span<const model::VariableSpec> variables,
    const std::map<std::string, std::string>& saved);

}  // namespace tfjob::keras
