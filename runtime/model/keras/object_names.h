// Finds the variables of a model in an object-based checkpoint.
#pragma once

#include <map>
#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::keras {

// Finds the saved name of each variable. Returns a map from variable names to the values that
// `saved` has for their saved names. The keys of `saved` are the names that the variables had in
// the program that saved them; the values of `saved` are arbitrary. Keras may prepend the name of
// the outermost model to a saved name, and may omit the names of nested functional models: the
// saved name of inner/deep/kernel may be inner/deep/kernel, outer/inner/deep/kernel or deep/kernel.
// Omits saved names that match several variables, and variables without a matching saved name.
std::map<std::string, std::string> MatchObjectNames(
    const model::Model& model, std::span<const model::VariableSpec> variables,
    const std::map<std::string, std::string>& saved);

}  // namespace tfjob::keras
