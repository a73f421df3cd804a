// Measures the memory of a process that reads files of 256 MiB: CSV, IDX and NumPy arrays.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "runtime/data/arrays/array_files.h"
#include "runtime/data/csv/csv_numbers.h"
#include "runtime/data/csv/csv_table.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/text/test_files.h"
#include "runtime/io/npy.h"
#include "tests/sanitized.h"

namespace tfjob::data {
namespace {

using text::testing::TextFolder;

// Sanitizers need more memory for each allocation and access, so they only check that the files
// are read. Their files are smaller, because they take longer.
constexpr int64_t kMegabyte = 1 << 20;
constexpr int64_t kFileBytes = (kSanitized ? 8 : 256) * kMegabyte;
const StorageOptions kStorage{.most_in_memory = kSanitized ? 1 << 20 : kMostInMemory};
constexpr int64_t kMostGrown = 64 * kMegabyte;

// Returns the largest resident memory of this process since the last call of ResetPeak.
int64_t Peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  ADD_FAILURE() << "/proc/self/status has no VmHWM";
  return 0;
}
void ResetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  ASSERT_TRUE(file.good()) << "the system refuses to reset the peak";
}

// Writes copies of `part` until the file has kFileBytes.
std::string Write(const TextFolder& folder, const std::string& header, const std::string& part) {
  const std::string path = folder.Write("data", header);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  for (int64_t written = 0; written < kFileBytes; written += std::ssize(part)) file << part;
  return path;
}

// Reads all batches in the order of the file, and then some batches in a random order.
void ReadBatches(const std::shared_ptr<const Source>& source) {
  EXPECT_FALSE(source->in_memory());
  PipelineOptions options{.batch_size = 256, .epochs = 1, .shuffle = false, .columns = {}};
  for (const Field& field : source->fields())
    options.columns.push_back({field.name, field.name, field.dtype, field.shape});
  for (const bool shuffle : {false, true}) {
    options.shuffle = shuffle;
    const auto pipeline = Pipeline::Create(source, options);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    int64_t rows = 0, batches = 0;
    while (const Batch* batch = (*pipeline)->Next()) {
      rows += batch->size();
      if (++batches == 50 && shuffle) break;
    }
    EXPECT_TRUE((*pipeline)->status().ok()) << (*pipeline)->status();
    if (!shuffle) {
      EXPECT_EQ(rows, source->size());
    }
  }
}

// Opens and reads a source, and checks by how much the memory has grown.
template <typename Open>
void ExpectFlat(const Open& open) {
  ResetPeak();
  const int64_t before = Peak();
  const StatusOr<std::shared_ptr<const Source>> source = open();
  ASSERT_TRUE(source.ok()) << source.status();
  ReadBatches(*source);
  // Up to 2^23 examples are shuffled by a list of their numbers, which are uint32.
  const int64_t list = (*source)->rows_in_memory() * static_cast<int64_t>(sizeof(uint32_t));
  if (!kSanitized) {
    EXPECT_LT(Peak() - before, kMostGrown + list) << (*source)->size() << " examples";
  }
}

TEST(LargerThanMemory, TablesOfNumbers) {
  const TextFolder folder;
  std::string rows;
  for (int i = 0; i < 2000; ++i) {
    for (int column = 0; column < 49; ++column) rows += StrCat(i, ".25,");
    rows += "1\n";
  }
  const std::string path = Write(folder, "", rows);
  ExpectFlat([&] { return OpenCsv({.file = path, .header = false}, kStorage); });
}

TEST(LargerThanMemory, TablesWithNames) {
  const TextFolder folder;
  auto terms = text::Vocabulary::FromTerms({"red", "green"}, 1, "colours");
  const std::string path = Write(folder, "colour,note,height\n",
                                 "red,\"a long note, with\na line break, to make rows longer than "
                                 "the bytes of the index\",1.5\ngreen,,2\n");
  ExpectFlat([&] {
    return OpenCsvTable(
        {.file = path,
         .features = {{{.name = "colour",
                        .dtype = DType::kInt64,
                        .vocabulary = std::make_shared<const text::Vocabulary>(*terms)},
                       {"colour"}},
                      {{.name = "height"}, {"height"}}},
         .fields = {{"x", "colour"}, {"y", "height"}},
         .storage = kStorage});
  });
}

TEST(LargerThanMemory, Images) {
  const TextFolder folder;
  const auto word = [](int64_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                       static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  const int64_t count = kFileBytes / 1024;
  const std::string images =
      Write(folder, std::string("\0\0\x08\x03", 4) + word(count) + word(32) + word(32),
            std::string(1024, '\7'));
  const std::string labels =
      folder.Write("labels", std::string("\0\0\x08\x01", 4) + word(count) +
                                 std::string(static_cast<size_t>(count), '\1'));
  ExpectFlat([&] { return OpenIdx({images, labels}, kStorage); });
}

TEST(LargerThanMemory, Arrays) {
  const TextFolder folder;
  const int64_t count = kFileBytes / 400;
  const std::string path =
      Write(folder, *io::NpyHeader(DType::kFloat32, {count, 100}), std::string(400, '\0'));
  std::filesystem::resize_file(path, io::NpyHeader(DType::kFloat32, {count, 100})->size() +
                                         static_cast<size_t>(count) * 400);
  std::filesystem::rename(path, path + ".npy");
  ExpectFlat([&] { return OpenNpz({.file = {}, .arrays = {{"x", path + ".npy"}}}, kStorage); });
}

}  // namespace
}  // namespace tfjob::data
