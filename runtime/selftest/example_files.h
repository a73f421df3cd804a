// Declares the text of the examples. The build generates the definition from
// deploy/examples/models.
#pragma once

#include <span>
#include <string_view>

namespace tfjob::selftest {

struct ExampleFile {
  std::string_view name, text;  // "bert-small", the manifest
};
std::span<const ExampleFile> ExampleFiles();

}  // namespace tfjob::selftest
