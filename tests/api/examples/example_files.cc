#include "tests/api/examples/example_files.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/images/decode/test_images.h"
#include "runtime/data/tfrecord/test_example.h"
#include "runtime/io/npy.h"
#include "runtime/io/record.h"

namespace tfjob::examples {
namespace {

void Write(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

// Returns an IDX file of bytes, all of which are `value`. All dimensions are below 256.
std::string Idx(const std::vector<uint8_t>& shape, char value) {
  std::string content = {0, 0, 8, static_cast<char>(shape.size())};
  size_t size = 1;
  for (const uint8_t length : shape) {
    content += std::string(3, '\0') + static_cast<char>(length);
    size *= length;
  }
  return content + std::string(size, value);
}

template <typename T>
std::string Npy(DType dtype, const Shape& shape, const std::vector<T>& values) {
  return io::NpyHeader(dtype, shape).value() +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

void WritePoints(const std::filesystem::path& folder) {
  std::string records, lines;
  std::vector<float> x;
  std::vector<int64_t> y;
  for (int i = 0; i < 8; ++i) {
    const float value = static_cast<float>(i);
    x.insert(x.end(), {value, -value});
    y.push_back(i % 2);
    using namespace data::testing;  // NOLINT: only for the next statement
    io::AppendRecord(
        ExampleOf({{"x", FloatFeature({value, -value})}, {"class", Int64Feature({i % 2})}}),
        records);
    lines += "{\"x\": [" + std::to_string(i) + ", " + std::to_string(-i) +
             "], \"class\": " + std::to_string(i % 2) + "}\n";
  }
  Write(folder / "points.tfrecord", records);
  Write(folder / "points.jsonl", lines);
  Write(folder / "x.npy", Npy(DType::kFloat32, {8, 2}, x));
  Write(folder / "y.npy", Npy(DType::kInt64, {8}, y));
}

}  // namespace

void WriteFiles(const std::string& name) {
  const std::filesystem::path folder = name;
  for (const std::string set : {"train", "t10k"}) {
    Write(folder / "fashion" / (set + "-images-idx3-ubyte.gz"), Idx({4, 28, 28}, 100));
    Write(folder / "fashion" / (set + "-labels-idx1-ubyte.gz"), Idx({4}, 3));
  }
  WritePoints(folder);
  Write(folder / "houses.csv",
        "area,rooms,city,price\n50,2,Bonn,100\n80,3,Kiel,180\n60,2,Kiel,120\n90,4,Bonn,220\n");
  for (const char* image : {"cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"}) {
    const uint8_t grey = image[0] == 'c' ? 50 : 200;
    using namespace data::testing;  // NOLINT: only for the next statement
    Write(folder / "photos" / image, WritePng(Uniform(2, 3, {grey, grey, grey})));
  }
  std::string lines;
  for (int i = 0; i < 8; ++i) lines += "once upon a time " + std::to_string(i) + "\n";
  Write(folder / "stories.txt", lines);
  for (const char* review : {"bad/1.txt", "bad/2.txt", "good/1.txt", "good/2.txt"})
    Write(folder / "reviews" / review, std::string("a film that is ") + review);
}

}  // namespace tfjob::examples
