// Tests cache files, which keep the values of a source.
#include "runtime/data/operators/cache_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/data/operators/join.h"
#include "runtime/data/operators/map.h"
#include "runtime/data/operators/test_sources.h"
#include "tests/faults/faulty_files.h"

namespace tfjob::data {
namespace {

using testing::Numbers;
using testing::OnDisk;
using testing::ReadAll;

class CacheFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  SourcePtr Cached(const SourcePtr& source, FileSystem& files = RealFileSystem()) const {
    StatusOr<SourcePtr> cached = CacheInFile(source, path_, "", files);
    EXPECT_TRUE(cached.ok()) << cached.status();
    return *std::move(cached);
  }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(std::string_view content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }
  int FilesInFolder() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  const std::string folder_ = ::testing::TempDir() + "cache_file_test_" +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/numbers.cache";
};

std::shared_ptr<OnDisk> Disk(int64_t count) {
  return std::make_shared<OnDisk>(Numbers(5, count));
}

TEST_F(CacheFile, IsWrittenOnceAndReadLater) {
  const auto first = Disk(700), second = Disk(700);
  const SourcePtr written = Cached(first);
  EXPECT_EQ(first->reads(), 700);
  const std::vector<int64_t> numbers = ReadAll(Numbers(5, 700));
  EXPECT_EQ(ReadAll(written), numbers);
  EXPECT_EQ(first->reads(), 700) << "the source is not read again";
  const SourcePtr read = Cached(second);
  EXPECT_EQ(ReadAll(read), numbers);
  EXPECT_EQ(second->reads(), 0);
  EXPECT_EQ(read->fingerprint(), second->fingerprint());
  EXPECT_FALSE(read->in_memory());
  EXPECT_THAT(read->Describe(), ::testing::HasSubstr("; cached in " + path_));
  EXPECT_EQ(FilesInFolder(), 1) << "no temporary file is left";
}

TEST_F(CacheFile, GivesTheSameBatchesAsTheSource) {
  PipelineOptions options = testing::InOrder(*Disk(30), 4);
  options.shuffle = true;
  options.epochs = 2;
  const SourcePtr cached = Cached(Disk(30));
  EXPECT_EQ(testing::Read(cached, options), testing::Read(Disk(30), options));
  const auto joined = Concatenate({cached, Disk(9)});
  ASSERT_TRUE(joined.ok()) << joined.status();
  const auto expected = Concatenate({Disk(30), Disk(9)});
  EXPECT_EQ(testing::Read(*joined, options), testing::Read(*expected, options));
}

TEST_F(CacheFile, OfOtherDataIsReplaced) {
  Cached(Disk(20));
  EXPECT_EQ(ReadAll(Cached(Disk(21))), ReadAll(Numbers(5, 21))) << "another number of examples";
  const auto joined = Concatenate({Disk(20), Disk(1)});
  ASSERT_TRUE(joined.ok()) << joined.status();
  std::vector<int64_t> numbers = ReadAll(Numbers(5, 20));
  numbers.push_back(5);
  EXPECT_EQ(ReadAll(Cached(*joined)), numbers) << "another fingerprint";
}

TEST_F(CacheFile, ThatIsNotCompleteIsReplaced) {
  Cached(Disk(20));
  const std::string whole = Content();
  for (const size_t bytes : {size_t{16}, size_t{48}, whole.size() - 1}) {
    Write(whole.substr(0, bytes));
    const auto source = Disk(20);
    EXPECT_EQ(ReadAll(Cached(source)), ReadAll(Numbers(5, 20)));
    EXPECT_EQ(source->reads(), 20);
    EXPECT_EQ(Content(), whole);
  }
  Write(whole + "x");
  Cached(Disk(20));
  EXPECT_EQ(Content(), whole);
}

TEST_F(CacheFile, OfAnotherVersionIsReplaced) {
  Cached(Disk(20));
  const std::string whole = Content();
  std::string other = whole;
  other[16] ^= 1;  // a bit of the hash of the program's version
  Write(other);
  const auto source = Disk(20);
  EXPECT_EQ(ReadAll(Cached(source)), ReadAll(Numbers(5, 20)));
  EXPECT_EQ(source->reads(), 20);
  EXPECT_EQ(Content(), whole);
}

TEST_F(CacheFile, OfOtherTablesIsReplaced) {
  const auto joined = [](int64_t first) {
    StatusOr<SourcePtr> made = Concatenate({Numbers(first, 3), Disk(2)});
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  };
  Cached(joined(1));
  EXPECT_EQ(ReadAll(Cached(joined(30))), (std::vector<int64_t>{30, 31, 32, 5, 6}));
}

TEST_F(CacheFile, OfFunctionsHasAVersion) {
  const auto mapped = [](int64_t factor) {
    StatusOr<SourcePtr> made = Map(
        Numbers(1, 3),
        [factor](const Example& example) -> StatusOr<Example> {
          const int64_t value = factor * std::as_const(example[0].value).data<int64_t>()[0];
          const auto twice = static_cast<float>(2 * value);
          return Example{{"x", Tensor::Scalar<int64_t>(value)},
                         {"x2", Tensor::Of<float>({2}, {twice, twice})}};
        },
        1);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  };
  EXPECT_EQ(Message(CacheInFile(mapped(2), path_).status()),
            path_ +
                ": expected a version of the cached examples, because functions of the program "
                "compute them, so a change would not be noticed; pass one to CacheFile, and "
                "change it whenever the examples change");
  const auto joined = Concatenate({mapped(2), mapped(3)});
  EXPECT_FALSE(CacheInFile(*joined, path_).ok());
  EXPECT_EQ(FilesInFolder(), 0);
  const auto first = CacheInFile(mapped(2), path_, "twice");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ReadAll(*first), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ(ReadAll(*CacheInFile(mapped(3), path_, "twice")), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_EQ(ReadAll(*CacheInFile(mapped(3), path_, "thrice")), (std::vector<int64_t>{3, 6, 9}));
}

TEST_F(CacheFile, TemporaryFilesOfKilledWritersAreRemoved) {
  const std::string old = path_ + ".tmp.0123456789abcdef", young = path_ + ".tmp.fedcba9876543210";
  const std::string other = folder_ + "/letters.cache.tmp.0123456789abcdef";
  for (const std::string& file : {old, young, other}) std::ofstream(file) << "half of it";
  for (const std::string& file : {old, other}) {
    std::filesystem::last_write_time(
        file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  }
  Cached(Disk(20));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_TRUE(std::filesystem::exists(young)) << "it may still be written";
  EXPECT_TRUE(std::filesystem::exists(other)) << "it belongs to another cache";
}

TEST_F(CacheFile, DamageIsFoundWhenAnExampleIsRead) {
  const SourcePtr cached = Cached(Disk(20));
  std::string damaged = Content();
  damaged[damaged.size() - 10] ^= 1;  // a bit of the last example
  Write(damaged);
  const auto [numbers, error] = testing::Read(cached, testing::InOrder(*cached, 1));
  EXPECT_EQ(numbers.size(), 19u);
  EXPECT_TRUE(absl::IsDataLoss(error)) << error;
  EXPECT_EQ(Message(error), path_ +
                                ": example 19: its checksum is wrong; remove the file, and it "
                                "is written again");
}

TEST_F(CacheFile, OtherFilesAreNotOverwritten) {
  for (const char* content : {"my thesis, which is longer than a header of a cache", "short"}) {
    Write(content);
    const Status error = CacheInFile(Disk(3), path_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
    EXPECT_THAT(std::string(Message(error)),
                ::testing::StartsWith(path_ + ": expected a cache file of examples, or no file"));
    EXPECT_EQ(Content(), content);
  }
}

TEST_F(CacheFile, AFullDiskDoesNotStopTheRun) {
  faults::FaultyFiles files;
  files.Fill(true);
  const auto source = Disk(20);
  EXPECT_EQ(Cached(source, files), source);
  EXPECT_EQ(FilesInFolder(), 0) << "nothing is left";
  files.Fill(false);
  EXPECT_NE(Cached(source, files), source);
  EXPECT_EQ(FilesInFolder(), 1);
}

TEST_F(CacheFile, AFolderThatIsMissingDoesNotStopTheRun) {
  const auto source = Disk(20);
  const auto cached = CacheInFile(source, folder_ + "/none/a.cache");
  ASSERT_TRUE(cached.ok()) << cached.status();
  EXPECT_EQ(*cached, source);
}

TEST_F(CacheFile, SourcesInMemoryNeedNone) {
  const SourcePtr numbers = Numbers(0, 3);
  EXPECT_EQ(Cached(numbers), numbers);
  EXPECT_EQ(FilesInFolder(), 0);
}

}  // namespace
}  // namespace tfjob::data
