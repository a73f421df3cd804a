// Creates folders of images for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "runtime/data/images/decode/test_images.h"

namespace tfjob::data::testing {

// Creates a temporary folder, which the destructor removes.
class ImageFolder {
 public:
  ImageFolder() {
    std::string name = ::testing::TempDir() + "images_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~ImageFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ImageFolder(const ImageFolder&) = delete;
  ImageFolder& operator=(const ImageFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes a file and returns its path. Creates missing folders in the path.
  std::string Write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  // Writes a PNG image of 2 × 3 pixels, all of the same grey.
  std::string WriteGrey(const std::string& name, uint8_t grey) const {
    return Write(name, WritePng(Uniform(2, 3, {grey, grey, grey})));
  }

 private:
  std::string path_;
};

}  // namespace tfjob::data::testing
