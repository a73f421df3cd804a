// Lists the manifests in deploy/examples/models, and changes them for tests.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace tfjob::processes {

// A manifest that trains one kind of model: deploy/examples/models/<name>.yaml.
struct ModelExample {
  const char* name;
  const char* data;  // the data that make_data.py generates; "" for Fashion-MNIST
  double accuracy;   // the accuracy that the manifest promises
  int seconds;       // the time that the manifest promises, on two cores
};

// Returns all examples.
const std::vector<ModelExample>& ModelExamples();

// Returns the name of an example as part of the name of a test.
std::string TestName(const ModelExample& example);

void PrintTo(const ModelExample& example, std::ostream* out);

// Generates the example's data if it is not Fashion-MNIST, and returns the manifest with `folder`
// instead of the claims for the model and these data. Replaces the contents of `folder`.
std::string ManifestIn(const std::string& folder, const ModelExample& example);

// Returns the manifest without the workers and the parameter servers: the chief trains alone.
std::string WithChiefOnly(const std::string& manifest);

}  // namespace tfjob::processes
