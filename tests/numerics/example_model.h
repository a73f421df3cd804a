// Reads the example models of deploy/examples/models.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/yaml.h"
#include "runtime/model/keras.h"
#include "runtime/model/model.h"

namespace tfjob::model {

inline Json ReadDocument(const std::string& text, const std::string& name) {
  const auto documents = ParseYaml(text, name);
  EXPECT_TRUE(documents.ok()) << documents.status();
  return (*documents)[0];
}

// Returns the model in the ConfigMap of an example: either Keras' JSON, or the layers in the
// training file.
inline Model ReadExample(const std::string& name) {
  const auto text = ReadFile(StrCat("deploy/examples/models/", name, ".yaml"));
  EXPECT_TRUE(text.ok()) << text.status();
  const Json manifest = ReadDocument(*text, name);
  const JsonField data = JsonField(manifest)["data"];
  const auto json = data["model.json"].String();
  const auto training = data["training.yaml"].String();
  EXPECT_TRUE(training.ok()) << training.status();
  const Json file = ReadDocument(*training, name);
  auto model =
      json.ok() ? ReadKerasJson(*json, name) : ReadLayers(JsonField(file)["model"]["layers"]);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

}  // namespace tfjob::model
