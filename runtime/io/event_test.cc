#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/io/event.pb.h"
#include "runtime/io/event_writer.h"
#include "runtime/io/record.h"

namespace tfjob::io {
namespace {

TEST(Record, LeavesOutATornTailAndRefusesDamage) {
  std::string content;
  AppendRecord("one", content);
  AppendRecord("two", content);
  EXPECT_EQ(*ParseRecords(content), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(ParseRecords(content.substr(0, content.size() - 1))->size(), 1u);
  content[13] ^= 1;
  EXPECT_EQ(Message(ParseRecords(content).status()),
            "record at byte 0: the checksum of its payload is wrong");
}

TEST(EventWriter, WritesVersionStartGraphAndScalars) {
  const std::string folder = testing::TempDir() + "/event_test/eval";
  std::filesystem::remove_all(folder);
  const Time now(1700000000s);
  auto writer = EventWriter::Create(folder, now);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddStart(40, now).ok());
  ASSERT_TRUE((*writer)->AddGraph("a GraphDef", now).ok());
  ASSERT_TRUE((*writer)->AddScalars(50, {{"loss", 0.5}, {"accuracy", 0.875}}, now).ok());
  EXPECT_TRUE((*writer)->path().starts_with(folder + "/events.out.tfevents.1700000000."));

  StatusOr<std::vector<std::string>> records = ParseRecords(*ReadFile((*writer)->path()));
  ASSERT_TRUE(records.ok()) << records.status();
  ASSERT_EQ(records->size(), 4u);
  Event event;
  ASSERT_TRUE(event.ParseFromString((*records)[0]));
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  EXPECT_EQ(event.wall_time(), 1700000000.0);
  ASSERT_TRUE(event.ParseFromString((*records)[1]));
  EXPECT_EQ(event.session_log().status(), SessionLog::START);
  EXPECT_EQ(event.step(), 40);
  ASSERT_TRUE(event.ParseFromString((*records)[2]));
  EXPECT_EQ(event.graph_def(), "a GraphDef");
  ASSERT_TRUE(event.ParseFromString((*records)[3]));
  ASSERT_EQ(event.summary().value_size(), 2);
  EXPECT_EQ(event.summary().value(1).tag(), "accuracy");
  EXPECT_EQ(event.summary().value(1).simple_value(), 0.875f);
}

}  // namespace
}  // namespace tfjob::io
