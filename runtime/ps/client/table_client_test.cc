// Tests how the client reads rows of tables and pieces of copied tables, against a server that
// follows a script.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "runtime/ps/client/test_client.h"

namespace tfjob::ps {
namespace {

// Only rows of `w` are read.
class TableClientTest : public ClientTest {
 protected:
  TableClientTest() {
    options_.definition.row_gradients = options_.definition.tables = {0};
    server_.body =
        StrCat(R"({"fingerprint":")", Fingerprint(options_.definition), R"(","servers":1})");
    values_[0] = {};
  }
  StatusOr<bool> Pull() {
    const std::vector<int64_t> wanted = {1};
    return client_->PullRows(std::vector<std::span<const int64_t>>{wanted, {}},
                             std::vector<std::span<std::byte>>{row_, {}});
  }
  Answer Vector() const {
    return {{.type = wire::kValues, .flags = wire::kLast, .step = 3},
            {{.index = 1, .bytes = Floats(1, 8)}}};
  }
  float values_of_row_[3] = {};
  std::span<std::byte> row_ = std::as_writable_bytes(std::span(values_of_row_));
};

TEST_F(TableClientTest, RepeatsARequestWhoseRowsAreWrong) {
  struct Case {
    Bytes part;
    const char* expected;
  };
  const Case cases[] = {
      {{.index = 0, .bytes = Floats(6, 0)}, "shard 0: only 1 of its rows were asked for"},
      {{.index = 0, .offset = 12, .bytes = Floats(1, 0)}, "shard 0: only 1 of its rows were asked"},
      {{.index = 0, .offset = 32, .bytes = Floats(1, 0)}, "shard 0 has no bytes 32 to 36"},
      {{.index = 1, .bytes = Floats(1, 0)}, "shard 1: only 0 of its rows were asked for"},
      {{.index = 0, .bytes = Floats(2, 0)}, "4 bytes of its values did not arrive"},
  };
  for (const Case& wrong : cases) {
    server_.script[wire::kPull] = {{Vector()}};
    ASSERT_TRUE(Join().ok());
    rpc::FrameHeader header{.type = wire::kValues, .flags = wire::kLast | wire::kAgain};
    server_.script[wire::kPullRows] = {{{header, {wrong.part}}},
                                       {{header, {{.index = 0, .bytes = Floats(3, 4)}}}}};
    ASSERT_EQ(Pull().value(), true);
    EXPECT_EQ(values_of_row_[2], 4);
    EXPECT_TRUE(events_.Said(wrong.expected)) << wrong.expected;
  }
}

TEST_F(TableClientTest, TakesNoValuesOfTheWholeTable) {
  server_.script[wire::kPull] = {{Values({.step = 3}, 5)}, {Vector()}};
  ASSERT_TRUE(Join().ok());
  EXPECT_TRUE(events_.Said("bytes of shard 0, of which only rows are read"));
}

class TableChiefTest : public ChiefTest {
 protected:
  TableChiefTest() {
    options_.definition.row_gradients = options_.definition.tables = {0};
    values_[0] = {};
    server_.body =
        StrCat(R"({"fingerprint":")", Fingerprint(options_.definition), R"(","servers":1})");
    server_.state.flags = wire::kReady;
    server_.script[wire::kPull] = {{Vector()}, {Vector()}};
  }
  static Answer Vector() {
    return {{.type = wire::kValues, .flags = wire::kLast, .step = 3},
            {{.index = 1, .bytes = Floats(1, 8)}}};
  }
  static std::vector<Answer> Copy() {
    return {{{.type = wire::kShard},
             {{.index = 1, .slot = 0, .bytes = Floats(1, 5)},
              {.index = 1, .slot = 1, .bytes = Floats(1, 6)}}},
            {{.type = wire::kSnapshotEnd, .step = 31}, {{.bytes = "0 chief 0 1 2\n"}}}};
  }
  static Status Read(const state::Snapshot& snapshot, std::span<float> to, int64_t offset = 0) {
    return snapshot.variables[0].streamed[1]->Read(offset, std::as_writable_bytes(to));
  }
};

TEST_F(TableChiefTest, ReadsTheTablesOfACopy) {
  ASSERT_TRUE(Join().ok());
  server_.script[wire::kSnapshot] = {Copy()};
  StatusOr<state::Snapshot> copy = client_->TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->variables[1].slots[0].data<float>()[0], 6);
  server_.script[wire::kReadCopy] = {
      {{{.type = wire::kCopied}, {{.slot = 1, .offset = 4, .bytes = Floats(2, 9)}}}},
      {{{.type = wire::kReply, .value = static_cast<int64_t>(StatusCode::kNotFound)},
        {{.bytes = "it is gone"}}}}};
  float read[2] = {};
  ASSERT_EQ(Read(*copy, read, 4), OkStatus());
  EXPECT_EQ(read[1], 9);
  EXPECT_EQ(Read(*copy, read, 4), NotFound("ps 0 (here): it is gone"));
  copy = state::Snapshot();
  ASSERT_EQ(client_->Finish(), OkStatus());  // arrives after the notice that the copy is dropped
  EXPECT_EQ(std::ranges::count(server_.heard, "drop copy step=0"), 1);
}

TEST_F(TableChiefTest, TakesNoOtherPieceThanItAskedFor) {
  const Bytes wrong[] = {{.slot = 1, .offset = 4, .bytes = Floats(1, 9)},
                         {.slot = 1, .offset = 4, .bytes = Floats(3, 9)},
                         {.slot = 1, .offset = 0, .bytes = Floats(2, 9)},
                         {.slot = 0, .offset = 4, .bytes = Floats(2, 9)},
                         {.index = 1, .slot = 1, .offset = 4, .bytes = Floats(2, 9)}};
  for (const Bytes& part : wrong) {
    server_.script[wire::kPull] = {{Vector()}};
    ASSERT_TRUE(Join().ok());
    server_.script[wire::kSnapshot] = {Copy()};
    const StatusOr<state::Snapshot> copy = client_->TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    server_.script[wire::kReadCopy] = {{{{.type = wire::kCopied}, {part}}}};
    float read[2] = {};
    EXPECT_EQ(Message(Read(*copy, read, 4)),
              "ps 0 (here): ps 0 (here): other bytes than those of shard 0 from byte 4, which were "
              "asked for");
    EXPECT_EQ(read[0], 0);
    EXPECT_EQ(Read(*copy, read, 4), Unavailable("ps 0 (here): not connected"));
  }
}

TEST_F(TableChiefTest, TakesNoShardsOfTablesInACopy) {
  ASSERT_TRUE(Join().ok());
  std::vector<Answer> whole = Copy();
  whole[0].parts.push_back({.index = 0, .bytes = Floats(6, 1)});
  server_.script[wire::kSnapshot] = {whole, Copy()};
  const StatusOr<state::Snapshot> copy = client_->TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(events_.Said("bytes of shard 0 of a table, which were not asked for"));
}

}  // namespace
}  // namespace tfjob::ps
