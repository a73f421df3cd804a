// Tests a parameter server against peers that deliberately violate the protocol.
#include <gtest/gtest.h>

#include <limits>

#include "runtime/ps/forged_frames.h"
#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::ps {
namespace {

using HostileTest = RawPeerTest;

TEST_F(HostileTest, RefusesADefinitionWhoseSizesOverflow) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  for (const Definition& definition : ImpossibleDefinitions()) {
    EXPECT_EQ(Define(chief, definition, 1), StatusCode::kInvalidArgument)
        << definition.state.variables[0].shape.ToString();
  }
  EXPECT_EQ(Define(chief, Four(Mode::kAsynchronous), 1), StatusCode::kOk);
}

TEST_F(HostileTest, RefusesAStateThatItHasNoMemoryFor) {
  Start({.max_bytes = 1 << 20});
  RawPeer& chief = Connect("chief", 0);
  Bring(chief, Mode::kAsynchronous, 1);
  Definition large = Four(Mode::kAsynchronous);
  large.state.variables[0].shape = {1 << 20};
  EXPECT_EQ(Define(chief, large, 2), StatusCode::kInvalidArgument);
  EXPECT_TRUE(ps_->State().ready) << "the present state stays in service";
  EXPECT_EQ(ps_->State().epoch, 1);
}

TEST_F(HostileTest, RefusesAFillThatDoesNotCoverTheState) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  const std::vector<std::vector<Bytes>> fills = {
      {{.offset = 8, .bytes = Floats(4, 0)}},
      {{.offset = ~uint64_t{0} - 8, .bytes = Floats(4, 0)}},
      {{.index = 1, .bytes = Floats(4, 0)}},
      {{.index = 0xFFFFFFFF, .bytes = Floats(4, 0)}},
      {{.slot = 1, .bytes = Floats(4, 0)}},
      {{.slot = 0xFFFFFFFF, .bytes = Floats(4, 0)}},
      {{.bytes = Floats(2, 0)}, {.bytes = Floats(2, 0)}},
      {{.bytes = Floats(2, 0)}},
  };
  int64_t epoch = 0;
  for (const std::vector<Bytes>& parts : fills) {
    ASSERT_EQ(Define(chief, Four(Mode::kAsynchronous), ++epoch), StatusCode::kOk);
    EXPECT_EQ(Fill(chief, parts, epoch), StatusCode::kInvalidArgument) << epoch;
    EXPECT_FALSE(ps_->State().ready);
  }
  ASSERT_EQ(Define(chief, Four(Mode::kAsynchronous), ++epoch), StatusCode::kOk);
  EXPECT_EQ(Fill(chief, {{.bytes = Floats(4, 0)}}, epoch, -1), StatusCode::kInvalidArgument);
}

TEST_F(HostileTest, TakesOrdersFromTheChiefOnly) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  Bring(chief, Mode::kSynchronous, 1);
  for (RawPeer* peer :
       {&Connect("worker", 0), &Connect("ps", 1), &Connect("evaluator", 0), &Connect("chief", 1)}) {
    EXPECT_EQ(Define(*peer, Four(Mode::kSynchronous), 2), StatusCode::kPermissionDenied);
    for (uint16_t type : {wire::kFilled, wire::kHold, wire::kRelease, wire::kSnapshot}) {
      EXPECT_EQ(peer->CodeOf({.type = type, .sequence = 3, .value = 1}),
                StatusCode::kPermissionDenied)
          << type;
    }
    EXPECT_EQ(peer->CodeOf({.type = wire::kFinish, .sequence = 3}), StatusCode::kPermissionDenied);
  }
  // The chief's state is still in service, and the job has not ended.
  EXPECT_EQ(ps_->State().epoch, 1);
  EXPECT_EQ(chief.CodeOf({.type = wire::kHold, .sequence = 4}), StatusCode::kOk);
  EXPECT_EQ(chief.CodeOf({.type = wire::kRelease, .sequence = 5}), StatusCode::kOk);
}

TEST_F(HostileTest, AnswersABriefQuestionWithoutABody) {
  Start();
  Bring(Connect("chief", 0), Mode::kAsynchronous, 5);
  RawPeer& worker = Connect("worker", 0);
  const Received whole = worker.Ask({.type = wire::kQuery, .sequence = 8});
  EXPECT_NE(whole.text.find("members"), std::string::npos) << whole.text;
  const Received brief = worker.Ask({.type = wire::kQuery, .flags = wire::kBrief, .sequence = 9});
  EXPECT_EQ(brief.text, "");
  EXPECT_EQ(brief.header.type, wire::kState);
  EXPECT_EQ(brief.header.flags, wire::kReady);
  EXPECT_EQ(brief.header.sequence, 9u);
  EXPECT_EQ(brief.header.value, 5);
  EXPECT_EQ(brief.header.step, whole.header.step);
}

TEST_F(HostileTest, TakesGradientsFromTasksThatTrainOnly) {
  Start();
  Bring(Connect("chief", 0), Mode::kAsynchronous, 1);
  for (RawPeer* peer : {&Connect("ps", 1), &Connect("evaluator", 0)}) {
    EXPECT_EQ(peer->CodeOf(Push(1, 0, 1), {{.bytes = Floats(4, 1)}}),
              StatusCode::kPermissionDenied);
    EXPECT_EQ(peer->CodeOf({.type = wire::kPull, .sequence = 2, .value = 1}),
              StatusCode::kPermissionDenied);
    EXPECT_EQ(peer->CodeOf({.type = wire::kLeave, .sequence = 2}), StatusCode::kPermissionDenied);
    EXPECT_EQ(peer->CodeOf({.type = wire::kFail, .sequence = 3}), StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(ps_->State().global_step, 0);
}

TEST_F(HostileTest, KeepsNothingOfARefusedContribution) {
  Start();
  Bring(Connect("chief", 0), Mode::kSynchronous, 1);
  EXPECT_EQ(
      Connect("worker", 0)
          .CodeOf(Push(1, 0, 1), {{.bytes = Floats(2, 1)}, {.offset = 4, .bytes = Floats(2, 1)}}),
      StatusCode::kInvalidArgument);
  EXPECT_EQ(ps_->State().staged_bytes, 0);
}

TEST_F(HostileTest, RefusesTasksThatTheJobDoesNotHave) {
  Start({.may_have = [](const std::string& type, int32_t index) {
    return type == "worker" && index < 2;
  }});
  EXPECT_EQ(Connect("worker", 1).admitted, OkStatus());
  const Status refused = Connect("worker", 2).admitted;
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(refused).find("the job has no task worker 2"), std::string_view::npos)
      << refused;
  EXPECT_EQ(Connect("master", 0).admitted.code(), StatusCode::kFailedPrecondition);
  // These names would forge log lines, or enlarge every list that contains them.
  for (const std::string& name : {std::string("worker\n2026-01-01 INFO all is well"),
                                  std::string("\x1b[2J"), std::string(60'000, 'w')}) {
    EXPECT_FALSE(Connect(name, 0).admitted.ok());
  }
  EXPECT_FALSE(Connect("worker", -1).admitted.ok());
}

TEST_F(HostileTest, RefusesStepsThatCannotBe) {
  Start();
  Bring(Connect("chief", 0), Mode::kAsynchronous, 1);
  RawPeer& worker = Connect("worker", 0);
  uint64_t sequence = 0;
  for (int64_t step :
       {std::numeric_limits<int64_t>::min(), int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(worker.CodeOf(Push(++sequence, step, 1), {{.bytes = Floats(4, 1)}}),
              StatusCode::kInvalidArgument)
        << step;
  }
  EXPECT_EQ(worker.Ask(Push(++sequence, 0, 1), {{.bytes = Floats(4, 1)}}).header.type,
            wire::kValues);
}

TEST_F(HostileTest, RefusesAContributionWithOtherBytesThanItsShardsHave) {
  Start();
  Bring(Connect("chief", 0), Mode::kAsynchronous, 1);
  RawPeer& worker = Connect("worker", 0);
  uint64_t sequence = 0;
  std::vector<std::vector<Bytes>> pushes = ImpossibleContributions(4);
  pushes.push_back({{.bytes = Floats(4, 1)}, {.bytes = Floats(4, 1)}});  // there is only one shard
  for (const std::vector<Bytes>& parts : pushes) {
    EXPECT_EQ(worker.CodeOf(Push(++sequence, 0, 1), parts), StatusCode::kInvalidArgument)
        << sequence;
  }
}

// A worker repeats a contribution that was already answered. The first part arrives while the
// server has a synchronous state, which contains the contribution and does not need its bytes. The
// second part arrives after the chief has replaced this state with an asynchronous one.
TEST_F(HostileTest, AContributionKeepsTheModeThatItBeganWith) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  RawPeer& worker = Connect("worker", 0);
  Bring(chief, Mode::kSynchronous, 1);
  ASSERT_EQ(worker.Ask(Push(1, 0, 1), {{.bytes = Floats(4, 1)}}).header.type, wire::kValues);
  ASSERT_TRUE(worker.Send(Push(1, 0, 1), {{.bytes = Floats(2, 1)}}).ok());
  ASSERT_EQ(worker.Ask({.type = wire::kQuery, .sequence = 9}).header.type, wire::kState);
  Bring(chief, Mode::kAsynchronous, 2);
  const rpc::FrameHeader rest{.type = wire::kPush, .sequence = 1, .value = 1};
  EXPECT_EQ(worker.CodeOf(rest, {{.offset = 8, .bytes = Floats(2, 1)}}), StatusCode::kAborted);
  EXPECT_EQ(ps_->State().global_step, 0);
}

TEST_F(HostileTest, KeepsNoMoreContributionsOfATaskThanAStepMayNeed) {
  Start();
  Bring(Connect("chief", 0), Mode::kSynchronous, 1);
  RawPeer& worker = Connect("worker", 0);
  // The contributions are for the next step, so none of them is used yet.
  int refused = 0;
  for (uint64_t sequence = 1; sequence <= 100; ++sequence) {
    ASSERT_TRUE(worker.Send(Push(sequence, 1, 1), {{.bytes = Floats(4, 1)}}).ok());
  }
  ASSERT_TRUE(worker.Send({.type = wire::kQuery, .sequence = 999}).ok());
  for (;;) {
    const Received answer = worker.Next();
    if (answer.header.type == wire::kState) break;
    ASSERT_EQ(answer.header.type, wire::kRefused);
    EXPECT_EQ(static_cast<StatusCode>(answer.header.value), StatusCode::kResourceExhausted);
    ++refused;
  }
  EXPECT_EQ(refused, 97);
  // Send a contribution to a step that is far ahead.
  EXPECT_EQ(Connect("worker", 1).CodeOf(Push(1, 50, 1), {{.bytes = Floats(4, 1)}}),
            StatusCode::kAborted);
}

// An announcement has no answer that could report the error. If the connection stayed open, the
// sender would train under an incarnation that the server does not know.
TEST_F(HostileTest, EndsTheConnectionOfAPeerThatAnnouncesAnImpossibleIncarnation) {
  Start({}, 1);
  RawPeer& worker = Connect("worker", 0);
  ASSERT_TRUE(worker.Send({.type = wire::kAnnounce, .value = -1}).ok());
  EXPECT_EQ(worker.Ask({.type = wire::kQuery, .sequence = 2}).header.type, 0);
}

TEST_F(HostileTest, RefusesAnEpochThatNoLaterOneCouldFollow) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000;
  const int64_t now = RealClock().Now().time_since_epoch().count();
  for (int64_t epoch : {std::numeric_limits<int64_t>::max(), int64_t{1} << 60, now + 11 * kYear}) {
    EXPECT_EQ(Define(chief, Four(Mode::kAsynchronous), epoch), StatusCode::kInvalidArgument);
  }
  Bring(chief, Mode::kAsynchronous, now + 9 * kYear);
  Bring(chief, Mode::kAsynchronous, now + 9 * kYear + 1);
  EXPECT_EQ(ps_->State().epoch, now + 9 * kYear + 1);
}

// Sends frames that have no answer, from peers whose role does not permit them. These frames must
// not have any effect.
TEST_F(HostileTest, FramesWithoutAnAnswerHaveNoEffectIfTheirSenderHasNotTheirRole) {
  Start();
  RawPeer& chief = Connect("chief", 0);
  RawPeer& worker = Connect("worker", 1);
  ASSERT_EQ(Define(chief, Four(Mode::kSynchronous), 1), StatusCode::kOk);
  ASSERT_TRUE(worker.Send({.type = wire::kFill, .value = 1}, {{.bytes = Floats(4, 9)}}).ok());
  ASSERT_EQ(worker.Ask({.type = wire::kQuery, .sequence = 8}).header.sequence, 8u);
  EXPECT_EQ(chief.CodeOf({.type = wire::kFilled, .sequence = 2, .value = 1}, {{.bytes = ""}}),
            StatusCode::kInvalidArgument)
      << "nothing was filled";
  Bring(chief, Mode::kSynchronous, 2);
  // A step needs two contributions. One has arrived. The worker falsely reports that the other has
  // also arrived.
  ASSERT_TRUE(chief.Send(Push(1, 0, 2), {{.bytes = Floats(4, 1)}}).ok());
  const std::vector<Bytes> staged = {{.bytes = "staged 2 0 worker 1 1 1 0"}};
  ASSERT_TRUE(worker.Send({.type = wire::kParticipant}, staged).ok());
  for (uint16_t type : {wire::kRenew, wire::kTaken}) {
    ASSERT_TRUE(worker.Send({.type = type}).ok());
  }
  ASSERT_EQ(worker.Ask({.type = wire::kQuery, .sequence = 9}).header.sequence, 9u);
  EXPECT_EQ(ps_->State().global_step, 0);
}

TEST_F(HostileTest, RefusesImpossibleIncarnationsAndPositions) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  Start();
  RawPeer& worker = Connect("worker", 0);
  const auto registers = [&](int64_t own, int64_t heard) -> rpc::FrameHeader {
    return {.type = wire::kRegister, .sequence = 5, .step = own, .value = heard};
  };
  EXPECT_EQ(worker.CodeOf(registers(0, 0)), StatusCode::kAborted) << "there is no state";
  Bring(Connect("chief", 0), Mode::kAsynchronous, 1);
  EXPECT_EQ(worker.CodeOf(Push(1, 0, 1), {{.bytes = Floats(4, 1)}}),
            StatusCode::kFailedPrecondition)
      << "not registered";
  EXPECT_EQ(worker.CodeOf(registers(kNever, 0)), StatusCode::kInvalidArgument);
  EXPECT_EQ(worker.CodeOf(registers(0, kNever)), StatusCode::kInvalidArgument);
  EXPECT_EQ(worker.Ask(registers(0, 0)).header.step, 1);
  const Bytes position = {.index = wire::kDrawn, .offset = uint64_t{1} << 63};
  EXPECT_EQ(worker.CodeOf(Push(2, 0, 1), {position, {.bytes = Floats(4, 1)}}),
            StatusCode::kInvalidArgument);
  const Bytes long_position = {.index = wire::kDrawn, .bytes = "12345678"};
  EXPECT_EQ(worker.CodeOf(Push(3, 0, 1), {long_position}), StatusCode::kInvalidArgument);
  EXPECT_EQ(Connect("evaluator", 0).CodeOf(registers(0, 0)), StatusCode::kPermissionDenied);
  EXPECT_EQ(ps_->State().global_step, 0);
}

// The answer to a small query lists all members, so answers pile up in the server if the peer does
// not read them.
TEST_F(HostileTest, GivesUpAPeerThatAsksAndDoesNotRead) {
  connector_.SetCapacity(128 << 10);
  Start({.max_queued_bytes = 64 << 10});
  for (int i = 0; i < 50; ++i) ASSERT_EQ(Connect("worker", i).admitted, OkStatus());
  RawPeer& worker = Connect("worker", 50);
  // Send more bytes than the pipe can buffer in either direction.
  const std::vector<Bytes> padding = {{.bytes = std::string(1024, ' ')}};
  Status sent;
  for (int asked = 0; sent.ok() && asked < 100'000; ++asked) {
    sent = worker.Send({.type = wire::kQuery, .sequence = 1}, padding);
  }
  EXPECT_EQ(sent.code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tfjob::ps
