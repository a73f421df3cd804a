// Finds a model's variables among those of an object-based checkpoint.
#pragma once

#include <map>
#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::keras {

// `saved` maps the names of variables in the program that saved them to anything. Keras begins such
// a name with that of the outermost model or not, and leaves out those of nested functional models:
// inner/deep/kernel is called inner/deep/kernel, outer/inner/deep/kernel or deep/kernel. Returns
// the variable's name → what the saved name maps to. A saved name that fits several variables
// equally well, and a variable that fits none, are left out.
std::map<std::string, std::string> MatchObjectNames(
    const model::Model& model, std::span<const model::VariableSpec> variables,
    const std::map<std::string, std::string>& saved);

}  // namespace tfjob::keras
