#include "operator/local/run/local_images.h"

#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "runtime/base/env.h"

namespace tfjob::local {
namespace {

constexpr char kTrainerImage[] = "tfjob/trainer";
constexpr char kTrainerProgram[] = "tfjob-trainer";

// Returns the resolved path; "" if it does not exist.
std::string RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &free);
  return real ? real.get() : "";
}

bool IsProgram(const std::string& path) {
  return !path.empty() && access(path.c_str(), X_OK) == 0;
}

// Returns the trainer program next to this one, in Bazel's output tree, or in PATH; "" if there is
// none.
std::string FindTrainer() {
  const std::string self = RealPath("/proc/self/exe");
  const std::string folder = self.substr(0, self.rfind('/'));
  std::vector<std::string> places = {folder, folder + "/../../runtime/cmd"};
  std::istringstream path(GetEnv("PATH").value_or(""));
  for (std::string place; std::getline(path, place, ':');) places.push_back(place);
  for (const std::string& place : places) {
    if (const std::string found = RealPath(StrCat(place, "/", kTrainerProgram)); IsProgram(found))
      return found;
  }
  return "";
}

StatusOr<process::LocalImage> MakeImage(const std::string& repository, const std::string& program) {
  const std::string real = RealPath(program);
  if (!IsProgram(real))
    return InvalidArgument(program, ": expected a program, but it cannot be executed");
  return process::LocalImage{repository, real};
}

}  // namespace

StatusOr<std::vector<process::LocalImage>> LocalImages(const std::string& trainer,
                                                       const std::vector<std::string>& images) {
  std::vector<process::LocalImage> local;
  for (const std::string& text : images) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return InvalidArgument("--image: expected REPOSITORY=PROGRAM, got \"", text, "\"");
    }
    ASSIGN_OR_RETURN(process::LocalImage image,
                     MakeImage(text.substr(0, equals), text.substr(equals + 1)));
    local.push_back(std::move(image));
  }
  const std::string program = trainer.empty() ? FindTrainer() : trainer;
  if (program.empty()) return local;
  ASSIGN_OR_RETURN(process::LocalImage image, MakeImage(kTrainerImage, program));
  local.push_back(std::move(image));
  return local;
}

process::Variables BaseEnvironment() {
  process::Variables variables;
  for (const char* name :
       {"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"}) {
    if (const auto value = GetEnv(name)) variables[name] = *value;
  }
  return variables;
}

}  // namespace tfjob::local
