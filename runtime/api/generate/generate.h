// Generates the headers and sources of layers, optimizers, schedules and losses from the table of
// layers (model/layer_table.h) and the keys of training files (config/keys.h). The C++ API
// therefore has exactly the features of training files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tfjob::api {

struct GeneratedFile {
  std::string name;  // "image_layers.h"
  std::string text;
};

std::vector<GeneratedFile> GeneratedFiles();

// Return the generated files for layers (LayerFiles), and for optimizers, schedules and losses
// (CompileFiles).
std::vector<GeneratedFile> LayerFiles();
std::vector<GeneratedFile> CompileFiles();

// A member of a generated struct.
struct GeneratedField {
  std::string type;  // "int64_t"
  std::string name;
  std::string initial;  // "0"
  std::string set;      // the statement that adds it to the form
  std::string doc;      // for users; may be empty
};

// Puts the members of a class in the order of Keras' arguments.
void OrderAsKeras(std::string_view class_name, std::vector<GeneratedField>& fields);
// Returns the declarations of the members, with their comments.
std::string Members(const std::vector<GeneratedField>& fields);
// Returns `text` as comment lines of at most 100 columns.
std::string Comment(const std::string& text, const std::string& indent);
// Returns Keras' name of the class, such as "ExponentialDecay" for "exponential_decay".
std::string ClassNameOf(const std::string& name);

}  // namespace tfjob::api
