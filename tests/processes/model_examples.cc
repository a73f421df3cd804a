#include "tests/processes/model_examples.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_replace.h"
#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "tests/processes/job_run.h"

namespace tfjob::processes {

const std::vector<ModelExample>& ModelExamples() {
  static const std::vector<ModelExample> kExamples = {{"mnist-cnn", "", 0.88, 60},
                                                      {"resnet-small", "", 0.84, 300},
                                                      {"densenet-small", "", 0.84, 300},
                                                      {"neumf-small", "ratings", 0.93, 60},
                                                      {"transformer-small", "dates", 0.98, 60},
                                                      {"nmt-small", "dates", 0.98, 60},
                                                      {"bert-small", "judgements", 0.97, 60},
                                                      {"gpt2-small", "sentences", 0.39, 60}};
  return kExamples;
}

std::string TestName(const ModelExample& example) {
  return absl::StrReplaceAll(example.name, {{"-", "_"}});
}

void PrintTo(const ModelExample& example, std::ostream* out) {
  *out << example.name;
}

std::string ManifestIn(const std::string& folder, const ModelExample& example) {
  std::filesystem::remove_all(folder);
  std::string manifest =
      *ReadFile(Runfile(StrCat("deploy/examples/models/", example.name, ".yaml")));
  manifest = WithModelFolder(manifest, example.name, folder + "/model");
  if (example.data[0] == 0) return manifest;
  const std::string make = StrCat("python3 ", Runfile("deploy/examples/models/make_data.py"), " ",
                                  example.data, " ", folder, "/data");
  ENFORCE(std::system(make.c_str()) == 0, make);
  const std::string claim = StrCat("local-path: /tmp/tfjob-", example.data);
  ENFORCE(absl::StrReplaceAll({{claim, StrCat("local-path: ", folder, "/data")}}, &manifest) == 1,
          claim);
  return manifest;
}

std::string WithChiefOnly(const std::string& manifest) {
  const size_t chief = manifest.find("\n    Chief:\n");
  const size_t others = manifest.find("\n    Worker:\n");
  ENFORCE(chief < others && others != std::string::npos, manifest);
  return manifest.substr(0, others + 1);
}

}  // namespace tfjob::processes
