// Creates and reads files of records, for tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/data/tfrecord/test_example.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "runtime/io/record.h"

namespace tfjob::data::testing {

// Creates a temporary folder, which the destructor removes.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/tfjob_tfrecord_test_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  // Writes a file, and returns its path.
  std::string Write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

// Returns example i, which has the label i mod 10 and the pixels i, -i.
inline std::string NumberedExample(int64_t i) {
  return ExampleOf({{"pixels", FloatFeature({static_cast<float>(i), static_cast<float>(-i)})},
                    {"label", Int64Feature({i % 10})}});
}

// Returns the records first, first + 1, …. Adds their offsets to `offsets`, unless it is null.
inline std::string NumberedRecords(int64_t first, int64_t count,
                                   std::vector<uint64_t>* offsets = nullptr) {
  std::string content;
  for (int64_t i = first; i < first + count; ++i) {
    if (offsets != nullptr) offsets->push_back(content.size());
    io::AppendRecord(NumberedExample(i), content);
  }
  return content;
}

inline RecordOptions NumberedOptions(std::vector<std::string> files) {
  return {.files = std::move(files),
          .features = {{.name = "label", .dtype = DType::kInt64}, {.name = "pixels", .shape = {2}}},
          .fields = {{"features", "pixels"}, {"labels", "label"}}};
}

inline PipelineOptions OptionsFor(const Source& source) {
  PipelineOptions options{.batch_size = 4, .epochs = 1, .seed = 1, .prefetch = 2};
  for (const Field& field : source.fields()) {
    options.columns.push_back(
        {.name = field.name, .array = field.name, .dtype = field.dtype, .shape = field.shape});
  }
  return options;
}

// Returns the numbers of the examples that the pipeline yields, in order, and the pipeline's
// status.
inline std::pair<std::vector<int64_t>, Status> Drain(Pipeline& pipeline) {
  std::vector<int64_t> numbers;
  while (const Batch* batch = pipeline.Next()) {
    for (size_t i = 0; i < static_cast<size_t>(batch->size()); ++i) {
      const float* pixels = batch->Find("features")->data<float>().data() + 2 * i;
      numbers.push_back(static_cast<int64_t>(pixels[0]));
      EXPECT_EQ(pixels[1], -pixels[0]);
      EXPECT_EQ(batch->Find("labels")->data<int64_t>()[i], numbers.back() % 10);
    }
  }
  return {numbers, pipeline.status()};
}

// Reads all records, in the order of the files.
inline std::pair<std::vector<int64_t>, Status> ReadAll(const RecordOptions& options) {
  const auto source = OpenTfRecords(options);
  if (!source.ok()) return {{}, source.status()};
  PipelineOptions reading = OptionsFor(**source);
  reading.shuffle = false;
  const auto pipeline = Pipeline::Create(*source, reading);
  if (!pipeline.ok()) return {{}, pipeline.status()};
  return Drain(**pipeline);
}

// Compresses text as TensorFlow does. `window_bits` is 15 for zlib, and 31 for gzip.
inline std::string Compressed(std::string_view text, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace tfjob::data::testing
