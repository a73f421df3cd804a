// Tests files with damage at pseudorandom places.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/philox.h"
#include "runtime/data/tfrecord/test_records.h"
#include "runtime/io/crc32c.h"

namespace tfjob::data {
namespace {

using testing::Folder;
using testing::NumberedOptions;
using testing::NumberedRecords;
using testing::ReadAll;

constexpr int64_t kRecords = 12;

// A damaged copy of NumberedRecords(0, kRecords).
struct Case {
  std::string content;
  uint64_t offset = 0;            // the offset of the damage, which the error must contain
  std::vector<int64_t> intact{};  // numbers of the undamaged records
};

std::vector<int64_t> Without(int64_t record) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < kRecords; ++i) {
    if (i != record) numbers.push_back(i);
  }
  return numbers;
}

class Damaging {
 public:
  explicit Damaging(uint64_t seed) : random_(PhiloxKey(seed, "damage")) {
    whole_ = NumberedRecords(0, kRecords, &offsets_);
  }

  Case Cut() {
    Case made;
    const uint64_t size = Below(whole_.size() - 1) + 1;
    const int64_t record = RecordAt(size);
    if (offsets_[static_cast<size_t>(record)] == size) return Cut();  // cut between two records
    made.content = whole_.substr(0, size);
    made.offset = offsets_[static_cast<size_t>(record)];
    for (int64_t i = 0; i < record; ++i) made.intact.push_back(i);
    return made;
  }

  Case FlippedBit() {
    Case made{.content = whole_};
    const uint64_t at = Below(whole_.size());
    made.content[at] = static_cast<char>(made.content[at] ^ (1 << Below(8)));
    const int64_t record = RecordAt(at);
    made.offset = offsets_[static_cast<size_t>(record)];
    made.intact = Without(record);
    return made;
  }

  // Returns a case in which a length is wrong but has a correct checksum.
  Case HugeLength() {
    Case made{.content = whole_};
    const int64_t record = static_cast<int64_t>(Below(kRecords));
    made.offset = offsets_[static_cast<size_t>(record)];
    const uint64_t length = uint64_t{1} << (16 + Below(48));
    std::memcpy(made.content.data() + made.offset, &length, 8);
    const uint32_t crc =
        io::MaskCrc(io::Crc32c(std::string_view(made.content).substr(made.offset, 8)));
    std::memcpy(made.content.data() + made.offset + 8, &crc, 4);
    made.intact = Without(record);
    return made;
  }

  Case Garbage() {
    Case made{.content = whole_, .intact = Without(-1)};
    made.offset = offsets_[Below(kRecords)];
    std::string bytes(Below(300) + 1, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_.Next());
    made.content.insert(made.offset, bytes);
    return made;
  }

  // Returns a case with a payload that is not an example, but has a correct checksum.
  Case NoExample() {
    Case made;
    const auto bad = static_cast<int64_t>(Below(kRecords));
    for (int64_t i = 0; i < kRecords; ++i) {
      if (i == bad) made.offset = made.content.size();
      io::AppendRecord(i == bad ? "text" : testing::NumberedExample(i), made.content);
    }
    made.intact = Without(bad);
    return made;
  }

 private:
  uint64_t Below(uint64_t bound) { return random_.Below(static_cast<uint32_t>(bound)); }
  int64_t RecordAt(uint64_t byte) const {
    const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), byte);
    return after - offsets_.begin() - 1;
  }

  PhiloxStream random_;
  std::string whole_;
  std::vector<uint64_t> offsets_;
};

void Check(const Folder& folder, const Case& damaged, std::string_view what) {
  const std::string path = folder.Write("damaged", damaged.content);
  const std::string place = StrCat(path, ": record at byte ", damaged.offset, ": ");
  const auto fails = ReadAll(NumberedOptions({path}));
  EXPECT_EQ(fails.second.code(), StatusCode::kDataLoss) << what;
  EXPECT_EQ(Message(fails.second).substr(0, place.size()), place) << what;
  EXPECT_TRUE(Message(fails.second).ends_with("set on_damaged: skip to leave out what is damaged"))
      << fails.second;

  // Add another file, because a source without records would be an error.
  RecordOptions skips =
      NumberedOptions({path, folder.Write("intact", NumberedRecords(kRecords, 1))});
  skips.skip_damaged = true;
  const auto rest = ReadAll(skips);
  EXPECT_TRUE(rest.second.ok()) << what << rest.second;
  std::vector<int64_t> expected = damaged.intact;
  expected.push_back(kRecords);
  EXPECT_EQ(rest.first, expected) << what << " at " << damaged.offset;
  const auto source = OpenTfRecords(skips);
  ASSERT_TRUE(source.ok()) << source.status();
  const std::string report = StrCat("1 damaged place is left out of the data; the first: ", place);
  EXPECT_EQ((*source)->LeftOut().substr(0, report.size()), report) << what;
}

TEST(Damage, IsFoundWhereverItIs) {
  const Folder folder;
  for (uint64_t seed = 0; seed < 25; ++seed) {
    Damaging damaging(seed);
    Check(folder, damaging.Cut(), "cut");
    Check(folder, damaging.FlippedBit(), "flipped");
    Check(folder, damaging.HugeLength(), "huge length");
    Check(folder, damaging.Garbage(), "garbage");
    Check(folder, damaging.NoExample(), "no example");
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  Check(folder, {}, "empty");
}

TEST(Damage, IsCounted) {
  const Folder folder;
  std::vector<uint64_t> offsets;
  std::string content = NumberedRecords(0, kRecords, &offsets);
  for (const size_t record : {2, 5, 9}) ++content[offsets[record] + 20];
  RecordOptions options = NumberedOptions({folder.Write("a", content), folder.Write("b", "")});
  options.skip_damaged = true;
  const auto source = OpenTfRecords(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), kRecords - 3);
  EXPECT_EQ((*source)->LeftOut(),
            StrCat("4 damaged places are left out of the data; the first: ", folder.path(),
                   "/a: record at byte ", offsets[2], ": the checksum of its payload is wrong"));
}

TEST(Damage, LeavesNothing) {
  const Folder folder;
  RecordOptions options = NumberedOptions({folder.Write("a", "damaged")});
  options.skip_damaged = true;
  EXPECT_EQ(Message(OpenTfRecords(options).status()),
            StrCat(folder.path(),
                   "/a: expected at least one intact record, found none; the first "
                   "problem: ",
                   folder.path(),
                   "/a: record at byte 0: expected at least 16 bytes, the file ends "
                   "after 7"));
}

TEST(Damage, AfterOpeningIsAnError) {
  const Folder folder;
  RecordOptions options = NumberedOptions({folder.Write("a", NumberedRecords(0, 10))});
  options.skip_damaged = true;
  const auto source = OpenTfRecords(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto before = std::filesystem::last_write_time(options.files[0]);
  std::string content = NumberedRecords(0, 10);
  ++content[20];
  // If the modification time does not change, only a checksum reveals the change.
  folder.Write("a", content);
  std::filesystem::last_write_time(options.files[0], before);
  PipelineOptions reading = testing::OptionsFor(**source);
  reading.shuffle = false;
  const auto changed = Pipeline::Create(*source, reading);
  EXPECT_EQ(Message(testing::Drain(**changed).second),
            StrCat(folder.path(),
                   "/a: record at byte 0: the checksum of its payload is wrong; the "
                   "file has changed since it was opened"));
  folder.Write("a", NumberedRecords(0, 9));
  const auto shorter = Pipeline::Create(*source, reading);
  const Status error = testing::Drain(**shorter).second;
  EXPECT_EQ(error.code(), StatusCode::kFailedPrecondition) << error;
  EXPECT_TRUE(Message(error).starts_with(folder.path() +
                                         "/a: the file has changed since this task opened it"))
      << error;
}

// Tests a record of length 376, because the first two bytes of this length look like a zlib header.
TEST(Damage, OfTheFirstLengthIsNotTakenForDamagedCompression) {
  const Folder folder;
  std::string content;
  io::AppendRecord(std::string(376, 'x'), content);
  content += NumberedRecords(0, 3);
  content[8] = static_cast<char>(content[8] ^ 1);
  RecordOptions options = NumberedOptions({folder.Write("damaged", content)});
  const Status error = ReadAll(options).second;
  EXPECT_NE(std::string(error.message()).find("record at byte 0"), std::string::npos) << error;
  options.skip_damaged = true;
  EXPECT_EQ(ReadAll(options).first, (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace tfjob::data
