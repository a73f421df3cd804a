// Tests that servers refuse forged requests for rows of tables, and for pieces of copied tables.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

using Rows = std::vector<int64_t>;

// Defines a vector and a table with four rows of two elements, for one server.
Definition SmallTable(Mode mode) {
  Definition definition = Four(mode);
  definition.state.variables = {{.name = "w", .shape = {4, 2}}, {.name = "b", .shape = {2}}};
  definition.row_gradients = definition.tables = {0};
  return definition;
}

std::string Indices(const Rows& indices) {
  return {reinterpret_cast<const char*>(indices.data()), indices.size() * sizeof(int64_t)};
}
Bytes Count(uint64_t rows, uint32_t shard = 0) {
  return {.index = shard, .slot = wire::kRowCount, .offset = rows, .bytes = ""};
}
rpc::FrameHeader PullRows(uint64_t sequence, int64_t epoch = 1) {
  return {.type = wire::kPullRows,
          .flags = wire::kFirst | wire::kLast,
          .sequence = sequence,
          .value = epoch};
}

// Returns requests for rows that the table does not have, and requests that are malformed.
std::vector<std::vector<Bytes>> ImpossibleRequests() {
  return {
      {{.bytes = Indices({0})}},  // indices without the number of rows
      {Count(0)},
      {Count(5)},  // more rows than the table has
      {Count(~uint64_t{0})},
      {{.slot = wire::kRowCount, .offset = 1, .bytes = Indices({0})}},  // number and rows at once
      {{.offset = 1, .bytes = ""}},                                     // no number
      {Count(1), {.bytes = Indices({4})}},                              // no such row
      {Count(1), {.bytes = Indices({-1})}},
      {Count(2), {.bytes = Indices({1, 1})}},            // twice
      {Count(2), {.bytes = Indices({2, 1})}},            // not ascending
      {Count(1), {.bytes = Indices({0, 1})}},            // more bytes than announced
      {Count(1), {.offset = 8, .bytes = Indices({0})}},  // does not start at the first byte
      {Count(1), {.bytes = "1234"}},                     // only a part of an index
      {Count(2), {.bytes = Indices({0})}},               // fewer bytes than announced
      {Count(2), Count(2)},
      {Count(2), {.index = 1, .bytes = Indices({0, 1})}},                      // another shard
      {Count(1, 1), {.index = 1, .bytes = Indices({0})}},                      // not a table
      {Count(1, 7)},                                                           // no such shard
      {Count(1), {.bytes = Indices({0})}, Count(1), {.bytes = Indices({1})}},  // shard 0 twice
  };
}

class HostileTableTest : public RawPeerTest, public testing::WithParamInterface<Mode> {
 protected:
  RawPeer& WorkerOf(const Definition& definition) {
    Start();
    RawPeer& chief = Connect("chief", 0);
    EXPECT_EQ(Define(chief, definition, 1), StatusCode::kOk);
    const std::string table = Floats(2, 0) + Floats(2, 1) + Floats(2, 2) + Floats(2, 3);
    EXPECT_EQ(Fill(chief, {{.bytes = table}, {.index = 1, .bytes = Floats(2, 9)}}, 1),
              StatusCode::kOk);
    return Connect("worker", 0);
  }
};

TEST_P(HostileTableTest, ServersRefuseWhatAreNoRowsOfTheTable) {
  RawPeer& worker = WorkerOf(SmallTable(GetParam()));
  uint64_t sequence = 0;
  for (const std::vector<Bytes>& parts : ImpossibleRequests()) {
    EXPECT_EQ(worker.CodeOf(PullRows(++sequence), parts), StatusCode::kInvalidArgument)
        << "request " << sequence;
  }
  EXPECT_EQ(worker.CodeOf(PullRows(++sequence, /*epoch=*/2), {}), StatusCode::kFailedPrecondition);
  // The server still answers a valid request whose row count and indices arrive in separate frames.
  const std::vector<Bytes> first = {Count(2)}, rest = {{.bytes = Indices({1, 3})}};
  rpc::FrameHeader header = PullRows(++sequence);
  header.flags = wire::kFirst;
  ASSERT_EQ(worker.Send(header, first), OkStatus());
  header.flags = wire::kLast;
  const Received values = worker.Ask(header, rest);
  EXPECT_EQ(values.header.type, wire::kValues);
  EXPECT_EQ(values.text, Floats(2, 1) + Floats(2, 3));
}

INSTANTIATE_TEST_SUITE_P(Modes, HostileTableTest,
                         testing::Values(Mode::kAsynchronous, Mode::kSynchronous));

TEST_F(HostileTableTest, AnswersToContributionsLackTheTable) {
  RawPeer& worker = WorkerOf(SmallTable(Mode::kAsynchronous));
  const Received pulled = worker.Ask({.type = wire::kPull, .sequence = 1, .value = 1});
  EXPECT_EQ(pulled.text, Floats(2, 9));
  const Received pushed =
      worker.Ask(Push(2, 0, 1), {Count(0), {.index = 1, .bytes = Floats(2, 1)}});
  EXPECT_EQ(pushed.header.type, wire::kValues);
  EXPECT_EQ(pushed.text, Floats(2, 8));
}

std::string PieceText(wire::CopyPiece piece) {
  return {reinterpret_cast<const char*>(&piece), sizeof(piece)};
}

TEST_F(HostileTableTest, ServersRefusePiecesThatTheyDoNotKeep) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), 1), StatusCode::kOk);
  const std::string table = Floats(2, 0) + Floats(2, 1) + Floats(2, 2) + Floats(2, 3);
  ASSERT_EQ(Fill(chief, {{.bytes = table}, {.index = 1, .bytes = Floats(2, 9)}}, 1),
            StatusCode::kOk);
  uint64_t sequence = 100;
  const auto read = [&](const std::string& body, int64_t copy = 1) {
    return chief.Ask({.type = wire::kReadCopy, .sequence = ++sequence, .value = copy},
                     {{.bytes = body}});
  };
  const auto code = [](const Received& answer) {
    return answer.header.type == wire::kReply ? static_cast<StatusCode>(answer.header.value)
                                              : StatusCode::kOk;
  };
  EXPECT_EQ(code(read(PieceText({.length = 8}))), StatusCode::kNotFound);
  ASSERT_EQ(chief.Send({.type = wire::kSnapshot, .sequence = 1}, {}), OkStatus());
  ASSERT_EQ(chief.Next().header.type, wire::kShard);
  ASSERT_EQ(chief.Next().header.type, wire::kSnapshotEnd);
  for (const std::string& body :
       {std::string(), std::string("1234"), PieceText({.length = 8}) + "x", PieceText({}),
        PieceText({.length = 33}), PieceText({.offset = ~uint64_t{7}, .length = 8}),
        PieceText({.length = ~uint64_t{0}}), PieceText({.slot = 1, .length = 8}),
        PieceText({.shard = 1, .length = 8}), PieceText({.shard = ~0u, .length = 8})}) {
    EXPECT_EQ(code(read(body)), StatusCode::kInvalidArgument) << sequence;
  }
  const Received piece = read(PieceText({.offset = 8, .length = 16}));
  EXPECT_EQ(piece.header.type, wire::kCopied);
  EXPECT_EQ(piece.text, Floats(2, 1) + Floats(2, 2));
  EXPECT_EQ(chief.CodeOf({.type = wire::kSnapshot, .sequence = 1}), StatusCode::kInvalidArgument);
  ASSERT_EQ(chief.Send({.type = wire::kDropCopy, .value = 7}, {}), OkStatus());
  ASSERT_EQ(chief.Send({.type = wire::kDropCopy, .value = 1}, {}), OkStatus());
  EXPECT_EQ(code(read(PieceText({.length = 8}))), StatusCode::kNotFound);
  // Request copies until the server refuses one: the number of copies per chief is limited.
  Received last;
  for (uint64_t i = 2; i < 20 && last.header.type != wire::kReply; ++i) {
    ASSERT_EQ(chief.Send({.type = wire::kSnapshot, .sequence = i}, {}), OkStatus());
    last = chief.Next();
    if (last.header.type == wire::kShard) chief.Next();
  }
  EXPECT_EQ(code(last), StatusCode::kResourceExhausted);
}

TEST_F(HostileTableTest, CopiesTakeOnlyTheMemoryThatIsLeft) {
  Start({.max_bytes = 150});  // the variables take 128 bytes
  RawPeer& chief = Connect("chief", 0);
  ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), 1), StatusCode::kOk);
  ASSERT_EQ(Fill(chief, {{.bytes = Floats(8, 0)}, {.index = 1, .bytes = Floats(2, 9)}}, 1),
            StatusCode::kOk);
  ASSERT_EQ(chief.Send({.type = wire::kSnapshot, .sequence = 1}, {}), OkStatus());
  ASSERT_EQ(chief.Next().header.type, wire::kShard);
  ASSERT_EQ(chief.Next().header.type, wire::kSnapshotEnd);
  const rpc::FrameHeader read = {.type = wire::kReadCopy, .sequence = 2, .value = 1};
  const std::vector<Bytes> piece = {{.bytes = PieceText({.length = 8})}};
  EXPECT_EQ(chief.Ask(read, piece).text, Floats(2, 0));
  RawPeer& worker = Connect("worker", 0);
  const Received pushed = worker.Ask(
      Push(1, 0, 1),
      {Count(1), {.bytes = Indices({1}) + Floats(2, 1)}, {.index = 1, .bytes = Floats(2, 1)}});
  EXPECT_EQ(pushed.header.type, wire::kValues) << "training goes on";
  EXPECT_EQ(chief.CodeOf(read, piece), StatusCode::kResourceExhausted);
}

TEST_F(HostileTableTest, CopiesOfEarlierStatesAreDropped) {
  for (const bool room : {false, true}) {
    Start({.max_bytes = room ? 292 : 291});  // two states of 128 bytes fit into 7/8 of 292 bytes
    RawPeer& chief = Connect("chief", 0);
    const std::vector<Bytes> state = {{.bytes = Floats(8, 0)}, {.index = 1, .bytes = Floats(2, 9)}};
    const auto code = [&](int64_t copy) {
      const Received answer = chief.Ask({.type = wire::kReadCopy, .sequence = 9, .value = copy},
                                        {{.bytes = PieceText({.length = 8})}});
      return answer.header.type == wire::kReply ? static_cast<StatusCode>(answer.header.value)
                                                : StatusCode::kOk;
    };
    for (int64_t epoch = 1; epoch <= 3; ++epoch) {
      ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), epoch), StatusCode::kOk);
      ASSERT_EQ(Fill(chief, state, epoch), StatusCode::kOk);
      if (epoch > 1) {
        EXPECT_EQ(code(epoch - 1), room ? StatusCode::kOk : StatusCode::kNotFound);
      }
      if (epoch > 2) {
        EXPECT_EQ(code(epoch - 2), StatusCode::kNotFound);
      }
      const auto copy = static_cast<uint64_t>(epoch);
      ASSERT_EQ(chief.Send({.type = wire::kSnapshot, .sequence = copy}, {}), OkStatus());
      ASSERT_EQ(chief.Next().header.type, wire::kShard);
      ASSERT_EQ(chief.Next().header.type, wire::kSnapshotEnd);
      EXPECT_EQ(code(epoch), StatusCode::kOk);
    }
    peers_.clear();
    connector_.Close("here");
  }
}

// The first fill breaks off, so no state is in service when the second fill starts.
TEST_F(HostileTableTest, ARepeatedFillKeepsTheCopiesOfTheLastState) {
  Start({.max_bytes = 292});  // two states of 128 bytes fit into 7/8 of this
  RawPeer& chief = Connect("chief", 0);
  const std::vector<Bytes> state = {{.bytes = Floats(8, 5)}, {.index = 1, .bytes = Floats(2, 9)}};
  ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), 1), StatusCode::kOk);
  ASSERT_EQ(Fill(chief, state, 1), StatusCode::kOk);
  ASSERT_EQ(chief.Send({.type = wire::kSnapshot, .sequence = 1}, {}), OkStatus());
  ASSERT_EQ(chief.Next().header.type, wire::kShard);
  ASSERT_EQ(chief.Next().header.type, wire::kSnapshotEnd);
  ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), 2), StatusCode::kOk);
  ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), 3), StatusCode::kOk);
  const Received piece = chief.Ask({.type = wire::kReadCopy, .sequence = 2, .value = 1},
                                   {{.bytes = PieceText({.length = 8})}});
  EXPECT_EQ(piece.text, Floats(2, 5));
}

TEST_F(HostileTableTest, ShardsThatHaveBeenCopiedCountBeforeAFill) {
  for (const bool room : {false, true}) {
    Start({.max_bytes = room ? 512 : 330});  // a state takes 128 bytes, a copied shard at least 64
    RawPeer& chief = Connect("chief", 0);
    ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), 1), StatusCode::kOk);
    ASSERT_EQ(Fill(chief, {{.bytes = Floats(8, 0)}, {.index = 1, .bytes = Floats(2, 9)}}, 1),
              StatusCode::kOk);
    ASSERT_EQ(chief.Send({.type = wire::kSnapshot, .sequence = 1}, {}), OkStatus());
    ASSERT_EQ(chief.Next().header.type, wire::kShard);
    ASSERT_EQ(chief.Next().header.type, wire::kSnapshotEnd);
    RawPeer& worker = Connect("worker", 0);
    const Received pushed = worker.Ask(
        Push(1, 0, 1),
        {Count(1), {.bytes = Indices({1}) + Floats(2, 1)}, {.index = 1, .bytes = Floats(2, 1)}});
    ASSERT_EQ(pushed.header.type, wire::kValues);
    const auto piece = [&] {
      return chief.Ask({.type = wire::kReadCopy, .sequence = 2, .value = 1},
                       {{.bytes = PieceText({.length = 8})}});
    };
    EXPECT_EQ(piece().text, Floats(2, 0));
    ASSERT_EQ(Define(chief, SmallTable(Mode::kAsynchronous), 2), StatusCode::kOk);
    const Received after = piece();
    EXPECT_EQ(after.header.type, room ? wire::kCopied : wire::kReply);
    peers_.clear();
    connector_.Close("here");
  }
}

TEST_F(HostileTableTest, OnlyTheChiefReadsCopies) {
  RawPeer& worker = WorkerOf(SmallTable(Mode::kAsynchronous));
  EXPECT_EQ(worker.CodeOf({.type = wire::kReadCopy, .sequence = 1, .value = 1}),
            StatusCode::kPermissionDenied);
}

TEST_F(HostileTableTest, OnlyTasksThatTrainReadRows) {
  WorkerOf(SmallTable(Mode::kAsynchronous));
  RawPeer& evaluator = Connect("evaluator", 0);
  EXPECT_EQ(evaluator.CodeOf({.type = wire::kPullRows, .sequence = 1, .value = 1}),
            StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace tfjob::ps
