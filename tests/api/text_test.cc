// Tests text and columns by name in the C++ API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "runtime/api/tfjob.h"

namespace {

namespace tj = tfjob::api;

std::string Temp(const std::string& name) {
  return testing::TempDir() + "/api_text_" + name;
}

std::string Write(const std::string& name, const std::string& content) {
  std::ofstream(Temp(name), std::ios::binary) << content;
  return Temp(name);
}
