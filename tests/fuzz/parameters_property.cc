#include "tests/fuzz/parameters_property.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/ps/definition.h"
#include "runtime/ps/placement.h"
#include "runtime/ps/server/server.h"
#include "runtime/ps/server/store.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::fuzz {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;
// The maximum number of shards to check. Larger placements are valid, but take too long to check.
constexpr size_t kMostShards = 10'000;

void CheckPlacement(const ps::Definition& definition, const std::vector<ps::Shard>& shards,
                    int servers) {
  int64_t expected = 0;  // offset of the next shard
  int variable = -1;
  const auto check_end = [&] {
    if (variable < 0) return;
    const state::Variable& ended = definition.state.variables[static_cast<size_t>(variable)];
    ENFORCE(expected == ended.shape.num_elements() * static_cast<int64_t>(SizeOf(ended.dtype)),
            "shards cover their variable");
  };
  for (const ps::Shard& shard : shards) {
    ENFORCE(shard.server >= 0 && shard.server < servers, "a shard is on a server");
    if (shard.variable != variable) {
      check_end();
      ENFORCE(shard.variable == ++variable, "shards are ordered by variable");
      expected = 0;
    }
    ENFORCE(shard.offset == expected && shard.size >= 0, "shards follow each other");
    if (ps::HasRowGradient(definition, variable)) {
      const int64_t row = ps::RowBytes(definition.state.variables[static_cast<size_t>(variable)]);
      ENFORCE(shard.offset % row == 0 && shard.size % row == 0, "shards have whole rows");
    }
    expected += shard.size;
  }
  check_end();
}

void CheckStore(const ps::Definition& definition, int servers) {
  ps::Store store(definition, 0, servers, 1);
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  for (int shard : store.shards()) {
    const auto index = static_cast<uint32_t>(shard);
    const uint64_t bytes = store.bytes_of(shard);
    const auto slots = static_cast<uint32_t>(store.slots_of(shard));
    ENFORCE(!store.CheckRange(index, 0, bytes, 1).ok(), "no byte behind the value");
    ENFORCE(!store.CheckRange(index, 0, kMost, 2).ok(), "no byte before the value");
    ENFORCE(!store.CheckRange(index, slots + 1, 0, 0).ok(), "no further slot");
    for (uint32_t slot = 0; slot <= slots; ++slot) {
      ENFORCE(store.CheckRange(index, slot, 0, bytes).ok(), "every part can be filled");
      std::ranges::fill(store.FillTarget(index, slot, 0, bytes), std::byte{0});
    }
  }
  ENFORCE(!store.CheckRange(std::numeric_limits<uint32_t>::max(), 0, 0, 0).ok(), "no such shard");
  ENFORCE(store.filled(), "all parts together are the state");
}

rpc::Identity Sender(uint8_t byte) {
  constexpr const char* kTypes[] = {"chief", "worker", "ps", "evaluator"};
  return {.task_type = kTypes[byte & 3], .task_index = byte & 2 ? 1 : 0, .incarnation = 1};
}

// Delivers frames, and then ends. Discards all frames that are written.
class Tape : public rpc::Transport {
 public:
  explicit Tape(std::vector<std::string_view> frames) : frames_(std::move(frames)) {}
  Status Write(const rpc::OutgoingFrame& frame) override {
    for (const rpc::Segment& segment : frame.segments) {
      if (segment.release != nullptr) segment.release(segment.argument);
    }
    return OkStatus();
  }
  Status Read(rpc::IncomingFrame& frame) override {
    if (next_ == frames_.size()) return Unavailable("the end");
    // Copy the bytes, so that a sanitizer detects reads beyond their end.
    bytes_.assign(frames_[next_].begin(), frames_[next_].end());
    ++next_;
    frame.pieces = {std::as_bytes(std::span(bytes_))};
    return frame.Parse();
  }
  void Cancel() override {}

 private:
  const std::vector<std::string_view> frames_;
  size_t next_ = 0;
  std::vector<char> bytes_;
};

struct Run {
  rpc::Identity sender;
  std::vector<std::string_view> frames;
};

// Returns a frame that registers the sender's process. The server reads contributions only from
// registered processes.
const std::string& Registration() {
  static const std::string* const frame = [] {
    auto* made = new std::string;
    rpc::AppendPrefix({.header = {.type = ps::wire::kRegister}, .segments = {}}, *made);
    return made;
  }();
  return *frame;
}

std::vector<Run> Split(std::string_view bytes) {
  std::vector<Run> runs;
  while (bytes.size() >= 3) {
    const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    const rpc::Identity sender = Sender(at(0));
    const size_t length = std::min<size_t>(at(1) | at(2) << 8, bytes.size() - 3);
    if (runs.empty() || !(runs.back().sender == sender)) runs.push_back({sender, {}});
    runs.back().frames.push_back(Registration());
    runs.back().frames.push_back(bytes.substr(3, length));
    bytes.remove_prefix(3 + length);
  }
  return runs;
}

// Returns the whole ledger of a store with one shard.
std::string LedgerOf(ps::Store& store) {
  std::string ledger = store.CounterLedger();
  std::vector<std::byte> state(store.bytes_of(0));
  store.CopyState(0, state.data(), ledger);
  return ledger;
}

}  // namespace

void CheckAssignmentProperties(std::string_view text) {
  const StatusOr<ps::Assignment> assignment = ps::ParseAssignment(std::string(text));
  if (!assignment.ok()) return;
  const ps::Definition& definition = assignment->definition;
  const StatusOr<ps::Assignment> again = ps::ParseAssignment(ps::Serialize(*assignment));
  ENFORCE(again.ok() && again->definition == definition && again->servers == assignment->servers,
          "an assignment survives the wire");
  const int servers = std::max(1, static_cast<int>(assignment->servers.size()));
  size_t count = 0;
  for (const state::Variable& variable : definition.state.variables) {
    count += static_cast<size_t>(ps::ShardCount(variable, definition.max_shard_bytes));
  }
  if (count > kMostShards || servers > 100) return;
  const std::vector<ps::Shard> shards = ps::Place(definition, servers);
  ENFORCE(shards.size() == count, "as many shards as announced");
  CheckPlacement(definition, shards, servers);
  if (ps::Store::BytesFor(definition, 0, servers) <= kMostBytes) CheckStore(definition, servers);
}

void CheckFrameProperties(std::string_view bytes) {
  rpc::PipeConnector nowhere;
  auto server = ps::ParameterServer::Create({.identity = {.task_type = "ps", .incarnation = 1},
                                             .max_bytes = kMostBytes,
                                             .connector = &nowhere});
  ENFORCE(server.ok(), "a server needs no frames");
  for (const Run& run : Split(bytes)) {
    Tape tape(run.frames);
    if ((*server)->Admit(run.sender).ok()) (*server)->Serve(run.sender, "tape", tape);
  }
  const ps::ServerState state = (*server)->State();
  ENFORCE(state.bytes >= 0 && state.bytes <= kMostBytes, "the state has the size it may have");
  ENFORCE(state.global_step >= 0, "steps are counted from 0");
  (*server)->Stop();
}

void CheckLedgerProperties(std::string_view text) {
  ps::Definition definition;
  definition.state.variables = {{.name = "w", .shape = {4}}};
  ps::Store store(definition, 0, 1, 1), again(definition, 0, 1, 1);
  if (!store.SetLedger(std::string(text)).ok()) return;
  const std::string written = LedgerOf(store);
  ENFORCE(again.SetLedger(written).ok(), "a written ledger must be accepted");
  ENFORCE(LedgerOf(again) == written, "a written ledger must read as the same ledger");
  (void)store.Incarnations();
}

}  // namespace tfjob::fuzz
