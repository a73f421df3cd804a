#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/protocol/participant.h"

namespace tfjob::ps::protocol {
namespace {

const Worker kA{"worker", 0}, kB{"worker", 1}, kC{"worker", 2};
Name Of(const Worker& worker, uint64_t sequence) {
  return {worker, 1, sequence};
}

TEST(Ledger, KnowsWhatWasAppliedForWhom) {
  Ledger ledger;
  ledger.Record(Of(kB, 4));
  EXPECT_TRUE(ledger.Contains(Of(kB, 4)));
  EXPECT_TRUE(ledger.Contains(Of(kB, 3)));
  EXPECT_FALSE(ledger.Contains(Of(kB, 5)));
  EXPECT_FALSE(ledger.Contains(Of(kA, 1)));
  EXPECT_FALSE(ledger.Contains(Name{kB, 2, 1}));  // a restarted worker restarts its sequence
  ledger.Record(Name{kB, 2, 1});
  EXPECT_TRUE(ledger.Contains(Of(kB, 9)));
}

// If each insertion moved all later entries, this test would take more than a minute.
TEST(Ledger, TakesManyEntriesInAnyOrder) {
  constexpr int kMany = 200'000;
  const auto start = std::chrono::steady_clock::now();
  Ledger ledger;
  for (int i = kMany; i-- > 0;) ledger.Record(Of({"worker", i}, 4));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  const std::vector<Name> entries = ledger.entries();
  ASSERT_EQ(entries.size(), size_t{kMany});
  EXPECT_TRUE(std::ranges::is_sorted(entries) && ledger.Contains(Of({"worker", 7}, 4)));
}

TEST(Messages, SurviveTheWireAndRefuseGarbage) {
  const ToParticipant commit = Commit{2, 7, {Of(kA, 3), Of(kC, 9)}};
  EXPECT_EQ(DecodeToParticipant(Encode(commit)), commit);
  const ToParticipant rated = Commit{2, 7, {Of(kA, 3)}, true, 0.1 * 0.1};
  EXPECT_EQ(DecodeToParticipant(Encode(rated)), rated);
  const ToParticipant plain = Commit{2, 7, {{{"worker", 0}, 1, 3}}};
  EXPECT_EQ(DecodeToParticipant("commit 2 7 1 worker 0 1 3"), plain);
  for (const char* bits : {"", "x", "9221120237041090560", "13830554455654793216"})  // NaN, -1
    EXPECT_FALSE(DecodeToParticipant(StrCat("commit 2 7 1 worker 0 1 3 rate ", bits))) << bits;
  const ToParticipant abort = Abort{4};
  EXPECT_EQ(DecodeToParticipant(Encode(abort)), abort);
  const ToParticipant merge = Merge{2, 7, Of(kA, 3), Of(kC, 9)};
  EXPECT_EQ(DecodeToParticipant(Encode(merge)), merge);
  EXPECT_FALSE(DecodeToParticipant("merge 2 7 worker 0 1 3 worker 1"));
  const ToParticipant measure = Commit{2, 7, {Of(kA, 3)}, true};
  EXPECT_EQ(DecodeToParticipant(Encode(measure)), measure);
  const std::vector<double> squares = {0.1, 1e308, 5e-324, std::numeric_limits<double>::infinity()};
  const ToParticipant totals = Totals{2, 7, squares};
  EXPECT_EQ(DecodeToParticipant(Encode(totals)), totals);
  const ToParticipant forget = Forget{2, 7, Of(kA, 3)};
  EXPECT_EQ(DecodeToParticipant(Encode(forget)), forget);
  EXPECT_FALSE(DecodeToParticipant("totals 2 7 2 1"));
  EXPECT_FALSE(DecodeToParticipant("totals 2 7 99999999999"));
  for (const ToCoordinator& message :
       {ToCoordinator(Hello{4, 5, 6}), ToCoordinator(StagedReport{1, 2, Of(kB, 3), 4}),
        ToCoordinator(AppliedReport{8, 9}), ToCoordinator(SquaresReport{1, 2, squares})}) {
    EXPECT_EQ(DecodeToCoordinator(Encode(message)), message);
  }
  EXPECT_FALSE(DecodeToParticipant("commit 2 7 2 worker 0 1 3"));
  EXPECT_FALSE(DecodeToParticipant("commit 2 7 99999999999"));
  for (const char* empty : {"commit 2 7 0", "measure 2 7 0"}) {
    EXPECT_FALSE(DecodeToParticipant(empty)) << empty;
  }
  EXPECT_FALSE(DecodeToParticipant(""));
  EXPECT_FALSE(DecodeToCoordinator("staged 1 x"));
  EXPECT_FALSE(DecodeToCoordinator("squares 1 2 3 4 5"));
}

// Tests the coordinator of two servers that both have the state of epoch 1, step 5.
class CoordinatorTest : public testing::Test {
 protected:
  void Begin(int aggregate) {
    EXPECT_FALSE(coordinator_.active());
    coordinator_.Fill(1, 5, aggregate);
    for (int server : {0, 1}) coordinator_.OnMessage(server, Hello{10, 1, 5});
    EXPECT_TRUE(coordinator_.active());
  }
  CoordinatorActions Stage(const Worker& worker, uint64_t sequence, int64_t step = 5) {
    coordinator_.OnMessage(0, StagedReport{1, step, Of(worker, sequence)});
    return coordinator_.OnMessage(1, StagedReport{1, step, Of(worker, sequence)});
  }
  static std::vector<Name> Committed(const CoordinatorActions& actions) {
    if (actions.messages.empty()) return {};
    const auto* commit = std::get_if<Commit>(&actions.messages[0].second);
    return commit == nullptr ? std::vector<Name>() : commit->set;
  }
  Coordinator coordinator_{2};
};

TEST_F(CoordinatorTest, CommitsTheFirstThatAreStagedEverywhereInWorkerOrder) {
  Begin(2);
  for (const Worker& worker : {kA, kB, kC}) coordinator_.Join(worker, 1);
  EXPECT_TRUE(Committed(coordinator_.OnMessage(0, StagedReport{1, 5, Of(kB, 1)})).empty());
  EXPECT_TRUE(Committed(Stage(kC, 1)).empty());
  EXPECT_EQ(Committed(Stage(kA, 1)), (std::vector{Of(kA, 1), Of(kC, 1)}));
  EXPECT_EQ(coordinator_.step(), 6);
  // The contribution of the backup worker is too late.
  EXPECT_TRUE(Committed(Stage(kB, 1)).empty());
  EXPECT_TRUE(Committed(Stage(kA, 2, 6)).empty());
}

TEST_F(CoordinatorTest, AsksForSeveralBatchesWhenThereAreTooFewWorkers) {
  Begin(3);
  coordinator_.Join(kA, 1);
  coordinator_.Join(kB, 1);
  CoordinatorActions actions = Stage(kA, 1);
  ASSERT_EQ(actions.again.size(), 1u);
  EXPECT_EQ(actions.again[0], (Again{kA, 1, 1, 5}));
  EXPECT_TRUE(Stage(kB, 1).again.empty());  // A is already computing the third contribution
  EXPECT_EQ(Committed(Stage(kA, 2)).size(), 3u);
}

TEST_F(CoordinatorTest, PassesTheTokenOfADepartedWorkerOn) {
  Begin(2);
  coordinator_.Join(kA, 1);
  coordinator_.Join(kB, 1);
  EXPECT_TRUE(Stage(kA, 1).again.empty());
  EXPECT_EQ(coordinator_.Awaited(), std::vector{kB});
  EXPECT_TRUE(coordinator_.Leave(kB, 0).again.empty());  // an older incarnation of B
  CoordinatorActions actions = coordinator_.Leave(kB, 1);
  ASSERT_EQ(actions.again.size(), 1u);
  EXPECT_EQ(actions.again[0].worker, kA);
}

TEST_F(CoordinatorTest, HoldsUntilAllHaveAppliedAndCommitsNothingMeanwhile) {
  Begin(1);
  coordinator_.Join(kA, 1);
  EXPECT_EQ(Committed(Stage(kA, 1)).size(), 1u);
  EXPECT_TRUE(coordinator_.Hold(0s, kA).holds.empty());
  coordinator_.OnMessage(0, AppliedReport{1, 6});
  CoordinatorActions actions = coordinator_.OnMessage(1, AppliedReport{1, 6});
  ASSERT_EQ(actions.holds.size(), 1u);
  EXPECT_TRUE(actions.holds[0].granted);
  EXPECT_TRUE(Committed(Stage(kA, 2, 6)).empty());
  EXPECT_EQ(Committed(coordinator_.Release(kA)).size(), 1u);
  // A hold that is neither released nor renewed ends after 60 s.
  for (int server : {0, 1}) coordinator_.OnMessage(server, AppliedReport{1, 7});
  coordinator_.Hold(1s, kA);
  EXPECT_TRUE(coordinator_.Holds(kA));
  EXPECT_TRUE(Committed(Stage(kA, 3, 7)).empty());
  coordinator_.Tick(60s);
  EXPECT_EQ(coordinator_.step(), 7);
  coordinator_.Renew(60s, kA);
  coordinator_.Renew(100s, kB);
  coordinator_.Tick(119s);
  EXPECT_TRUE(coordinator_.Holds(kA));
  EXPECT_EQ(coordinator_.step(), 7);
  coordinator_.Tick(120s);
  EXPECT_FALSE(coordinator_.Holds(kA));
  EXPECT_EQ(coordinator_.step(), 8);
  // A hold that has ended cannot be renewed.
  coordinator_.Renew(121s, kA);
  EXPECT_FALSE(coordinator_.Holds(kA));
}

TEST_F(CoordinatorTest, ARestartedServerVoidsTheEpoch) {
  Begin(1);
  CoordinatorActions actions = coordinator_.OnMessage(1, Hello{11, 0, 0});
  ASSERT_EQ(actions.messages.size(), 2u);
  EXPECT_EQ(std::get<Abort>(actions.messages[0].second), Abort{1});
  EXPECT_TRUE(Committed(Stage(kA, 1)).empty());
  coordinator_.Fill(2, 5, 1);
  EXPECT_FALSE(coordinator_.active());
  coordinator_.OnMessage(1, Hello{11, 2, 5});
  coordinator_.OnMessage(0, Hello{10, 2, 5});
  EXPECT_TRUE(coordinator_.active());
}

// Returns the final sum if contributions arrive in this order, as "((c+0)+(1+2))".
std::string SumOf(const std::vector<Worker>& arrivals, size_t expected_roots) {
  MergeTree tree;
  std::map<Name, std::string> sums;
  for (const Worker& worker : arrivals) {
    sums[Of(worker, 1)] = worker.type == "chief" ? "c" : std::to_string(worker.index);
    for (const auto& [into, from] : tree.Add(Of(worker, 1))) {
      sums[into] = "(" + sums[into] + "+" + sums[from] + ")";
      sums.erase(from);
    }
  }
  EXPECT_EQ(sums.size(), expected_roots);
  std::string total;
  for (const auto& [name, sum] : sums) total += (total.empty() ? "" : " ") + sum;
  return total;
}

TEST(MergeTree, SumsNeighboursInAnOrderThatDoesNotDependOnTheirArrival) {
  std::vector<Worker> workers = {{"chief", 0},  {"worker", 0}, {"worker", 1},
                                 {"worker", 2}, {"worker", 3}, {"worker", 4}};
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    std::shuffle(workers.begin(), workers.end(), random);
    EXPECT_EQ(SumOf(workers, 2), "((c+0)+(1+2)) (3+4)");
  }
  EXPECT_EQ(SumOf({{"worker", 2}, {"worker", 0}}, 2), "0 2");
  MergeTree tree;
  EXPECT_TRUE(tree.Add(Of({"worker", 1}, 1)).empty());
  EXPECT_TRUE(tree.Add(Of({"worker", 1}, 2)).empty()) << "a second one of the same worker";
  EXPECT_EQ(tree.Add(Of({"worker", 2}, 1)).size(), 1u);
  EXPECT_TRUE(tree.Add(Of({"worker", 1}, 3)).empty());
}

TEST_F(CoordinatorTest, AsksToSumWhatIsCertainToCount) {
  coordinator_.Fill(1, 5, 3, true);
  for (int server : {0, 1}) coordinator_.OnMessage(server, Hello{10, 1, 5});
  const Worker w[] = {{"worker", 1}, {"worker", 2}, {"worker", 3}, {"worker", 4}};
  for (const Worker& worker : w) coordinator_.Join(worker, 1);
  EXPECT_TRUE(Stage(w[0], 1).messages.empty());
  // This contribution is staged on one server only, so it is not certain to be used.
  EXPECT_TRUE(coordinator_.OnMessage(0, StagedReport{1, 5, Of(w[1], 1)}).messages.empty());
  EXPECT_TRUE(Stage(w[3], 1).messages.empty());
  const CoordinatorActions last = Stage(w[2], 1);
  ASSERT_EQ(last.messages.size(), 4u) << "a merge and the commit, to two servers";
  EXPECT_EQ(std::get<Merge>(last.messages[0].second), (Merge{1, 5, Of(w[2], 1), Of(w[3], 1)}));
  EXPECT_EQ(std::get<Commit>(last.messages[2].second).set,
            (std::vector{Of(w[0], 1), Of(w[2], 1), Of(w[3], 1)}));
}

TEST(Participant, SumsEachContributionOnce) {
  Participant participant(1);
  participant.Fill(Duration(0), 2, 7);
  for (const Worker& worker : {kA, kB, kC}) participant.Staged(2, 7, Of(worker, 1));
  const Merge merge{2, 7, Of(kA, 1), Of(kB, 1)};
  EXPECT_FALSE(participant.OnMessage(Merge{2, 7, Of(kA, 1), Of(kA, 9)}).merge) << "not staged";
  EXPECT_FALSE(participant.OnMessage(Merge{2, 7, Of(kA, 1), Of(kA, 1)}).merge) << "itself";
  EXPECT_FALSE(participant.OnMessage(Merge{2, 8, Of(kA, 1), Of(kB, 1)}).merge) << "another step";
  EXPECT_FALSE(participant.OnMessage(Merge{1, 7, Of(kA, 1), Of(kB, 1)}).merge) << "another epoch";
  EXPECT_EQ(participant.OnMessage(merge).merge, merge);
  EXPECT_FALSE(participant.OnMessage(merge).merge) << "repeated";
  EXPECT_FALSE(participant.OnMessage(Merge{2, 7, Of(kB, 1), Of(kC, 1)}).merge)
      << "into what is gone";
  EXPECT_FALSE(participant.Wants(2, 7, Of(kB, 1))) << "its bytes are part of the sum";
  const Commit commit{2, 7, {Of(kA, 1), Of(kB, 1)}};
  EXPECT_EQ(participant.OnMessage(commit).apply, commit);
  EXPECT_EQ(participant.Applied(2, 7).answers.size(), 3u);
}

TEST(Participant, AppliesTheSetAndDropsTheRest) {
  Participant participant(1);
  participant.Fill(0s, 3, 5);
  EXPECT_TRUE(participant.Wants(3, 5, Of(kA, 1)));
  EXPECT_FALSE(participant.Wants(3, 4, Of(kA, 1)));
  EXPECT_FALSE(participant.Wants(2, 5, Of(kA, 1)));
  participant.Staged(3, 5, Of(kA, 1));
  participant.Staged(3, 5, Of(kB, 1));
  ParticipantActions actions = participant.OnMessage(Commit{3, 5, {Of(kB, 1)}});
  ASSERT_TRUE(actions.apply);
  // A contribution that arrives while its step is being applied is dropped once the step has been
  // applied.
  EXPECT_TRUE(participant.Staged(3, 5, Of(kC, 1)).answers.empty());
  actions = participant.Applied(3, 5);
  EXPECT_EQ(
      actions.answers,
      (std::vector<Answer>{{Of(kA, 1), 6, true}, {Of(kB, 1), 6, false}, {Of(kC, 1), 6, true}}));
  // The workers repeat their contributions because the answers were lost.
  EXPECT_EQ(participant.Staged(3, 5, Of(kB, 1)).answers,
            (std::vector<Answer>{{Of(kB, 1), 6, false}}));
  EXPECT_EQ(participant.Staged(3, 5, Of(kA, 1)).answers,
            (std::vector<Answer>{{Of(kA, 1), 6, true}}));
  EXPECT_FALSE(participant.OnMessage(Commit{3, 5, {Of(kB, 1)}}).apply);
}

TEST(Participant, RefusesWhatWasMeantForAVoidState) {
  Participant participant(1);
  participant.Fill(0s, 3, 5);
  participant.Staged(3, 5, Of(kA, 1));
  EXPECT_FALSE(participant.OnMessage(Abort{2}).voided);
  ParticipantActions actions = participant.OnMessage(Abort{3});
  EXPECT_TRUE(actions.voided);
  EXPECT_EQ(actions.refused, std::vector{Of(kA, 1)});
  EXPECT_EQ(participant.Staged(3, 5, Of(kA, 1)).refused, std::vector{Of(kA, 1)});
}

TEST_F(CoordinatorTest, TheFirstStepWaitsForAllTasks) {
  coordinator_.Gather({kA, kB, kC}, 600s);
  Begin(2);
  coordinator_.Join(kA, 1);
  coordinator_.Join(kB, 1);
  EXPECT_EQ(coordinator_.Missing(), std::vector{kC});
  EXPECT_TRUE(Stage(kA, 1).again.empty());
  EXPECT_TRUE(Committed(Stage(kB, 1)).empty());
  // Holds are granted while the tasks gather, because the chief saves the first state during this
  // time.
  EXPECT_EQ(coordinator_.Hold(1s, kA).holds.size(), 1u);
  coordinator_.Release(kA);
  coordinator_.Leave(kB, 1);
  EXPECT_EQ(coordinator_.Missing(), (std::vector{kB, kC}));
  coordinator_.Join(kC, 1);
  EXPECT_EQ(coordinator_.Missing(), std::vector{kB});
  EXPECT_EQ(Committed(coordinator_.Join(kB, 2)), (std::vector{Of(kA, 1), Of(kB, 1)}));
  // After the first step has started, no step waits for a lost task, not even after a new state is
  // filled.
  coordinator_.Leave(kC, 1);
  EXPECT_TRUE(coordinator_.Missing().empty());
  coordinator_.Gather({kA, kB, kC}, 900s);
  coordinator_.Fill(2, 5, 2);
  EXPECT_TRUE(coordinator_.Missing().empty());
}

TEST_F(CoordinatorTest, GoesOnWithoutTasksThatDoNotComeInTime) {
  coordinator_.Gather({kA, kB, kC}, 600s);
  Begin(2);
  coordinator_.Join(kA, 1);
  coordinator_.Join(kB, 1);
  coordinator_.Leave(kB, 1, /*for_good=*/true);
  EXPECT_TRUE(Stage(kA, 1).again.empty());
  EXPECT_TRUE(coordinator_.Tick(599s).absent.empty());
  const CoordinatorActions late = coordinator_.Tick(600s);
  EXPECT_EQ(late.absent, std::vector{kC}) << "B's data has ended, so nobody waits for it";
  EXPECT_EQ(late.again.size(), 1u);
  EXPECT_TRUE(coordinator_.Missing().empty());
  EXPECT_TRUE(coordinator_.Tick(700s).absent.empty());
}

// Returns the totals in the message for `server`; empty if there is no such message.
std::vector<double> TotalsFor(int server, const CoordinatorActions& actions) {
  for (const auto& [to, message] : actions.messages) {
    const auto* totals = std::get_if<Totals>(&message);
    if (totals != nullptr && to == server) return totals->squares;
  }
  return {};
}

TEST_F(CoordinatorTest, SumsTheSquaresOfAllServersInTheirOrder) {
  coordinator_.Fill(1, 5, 1, false, 2);
  for (int server : {0, 1}) coordinator_.OnMessage(server, Hello{10, 1, 5});
  coordinator_.Join(kA, 1);
  CoordinatorActions actions = Stage(kA, 1);
  ASSERT_EQ(actions.messages.size(), 2u);
  EXPECT_EQ(std::get<Commit>(actions.messages[1].second), (Commit{1, 5, {Of(kA, 1)}, true}));
  const auto report = [&](int server, int64_t step, std::vector<double> squares) {
    return coordinator_.OnMessage(server, SquaresReport{1, step, std::move(squares)});
  };
  EXPECT_TRUE(report(1, 5, {1, 2}).messages.empty());
  EXPECT_TRUE(report(0, 4, {3, 4}).messages.empty()) << "another step";
  EXPECT_TRUE(report(0, 5, {3}).messages.empty()) << "another number of groups";
  // The measured commit is resent until all servers have reported.
  actions = coordinator_.Tick(1s);
  ASSERT_EQ(actions.messages.size(), 2u);
  EXPECT_TRUE(std::holds_alternative<Commit>(actions.messages[0].second));
  actions = report(0, 5, {3, 4});
  EXPECT_EQ(TotalsFor(0, actions), (std::vector<double>{4, 6}));
  EXPECT_EQ(TotalsFor(1, actions), (std::vector<double>{4, 6}));
  EXPECT_TRUE(report(0, 5, {9, 9}).messages.empty()) << "too late";
  // Then the totals are resent to the servers that have not applied the commit.
  coordinator_.OnMessage(0, AppliedReport{1, 6});
  actions = coordinator_.Tick(2s);
  ASSERT_EQ(actions.messages.size(), 1u);
  EXPECT_EQ(TotalsFor(1, actions), (std::vector<double>{4, 6}));
  // The next step is committed once all servers have applied this one. Its commit is also measured.
  EXPECT_TRUE(Committed(Stage(kA, 2, 6)).empty());
  EXPECT_EQ(Committed(coordinator_.OnMessage(1, AppliedReport{1, 6})).size(), 1u);
  EXPECT_TRUE(report(0, 6, {1, 1}).messages.empty());
  EXPECT_EQ(TotalsFor(0, report(1, 6, {1, 2})), (std::vector<double>{2, 3}));
}

TEST(Participant, AppliesAMeasuredCommitOnceItsTotalsAreKnown) {
  Participant participant(1);
  participant.Fill(0s, 3, 5, false, true);
  participant.Staged(3, 5, Of(kA, 1));
  participant.Staged(3, 5, Of(kB, 1));
  const Commit commit{3, 5, {Of(kA, 1), Of(kB, 1)}, true};
  const Totals totals{3, 5, {7}};
  EXPECT_FALSE(participant.OnMessage(totals).apply) << "before the commit";
  ParticipantActions actions = participant.OnMessage(commit);
  EXPECT_FALSE(actions.apply);
  EXPECT_EQ(actions.measure, commit);
  EXPECT_FALSE(participant.OnMessage(commit).measure) << "repeated";
  EXPECT_FALSE(participant.OnMessage(totals).apply) << "before it is measured";
  EXPECT_FALSE(participant.OnMessage(Merge{3, 5, Of(kA, 1), Of(kB, 1)}).merge) << "too late";
  EXPECT_TRUE(participant.Measured(2, 5, {4}).messages.empty()) << "another epoch";
  const std::vector<ToCoordinator> report = {SquaresReport{3, 5, {4}}};
  EXPECT_EQ(participant.Measured(3, 5, {4}).messages, report);
  EXPECT_EQ(participant.OnMessage(commit).messages, report) << "the report was lost";
  EXPECT_EQ(participant.Connected(0s).messages.back(), report[0]);
  EXPECT_FALSE(participant.OnMessage(Totals{3, 5, {7, 8}}).apply) << "other groups";
  EXPECT_FALSE(participant.OnMessage(Totals{3, 6, {7}}).apply) << "another step";
  actions = participant.OnMessage(totals);
  EXPECT_EQ(actions.apply, commit);
  EXPECT_EQ(actions.squares, totals.squares);
  EXPECT_FALSE(participant.OnMessage(totals).apply) << "repeated";
  EXPECT_EQ(participant.Applied(3, 5).answers.size(), 2u);
  EXPECT_EQ(participant.OnMessage(totals).messages,
            (std::vector<ToCoordinator>{AppliedReport{3, 6}}));
}

// Only a hostile worker reuses a name. A commit may already depend on the staged bytes.
TEST(Participant, KeepsWhatIsStagedIfItsNameComesAgain) {
  Participant participant(1);
  participant.Fill(0s, 3, 5);
  participant.Staged(3, 5, Of(kA, 1));
  for (const auto& [epoch, step] : {std::pair{3, 500}, std::pair{2, 5}, std::pair{4, 5}}) {
    const ParticipantActions again = participant.Staged(epoch, step, Of(kA, 1));
    EXPECT_TRUE(again.forget.empty()) << epoch << " " << step;
    EXPECT_EQ(again.refused, std::vector{Of(kA, 1)});
    EXPECT_EQ(participant.Staged(epoch, step, Of(kB, 1)).forget, std::vector{Of(kB, 1)});
  }
  EXPECT_EQ(participant.OnMessage(Commit{3, 5, {Of(kA, 1)}}).apply, (Commit{3, 5, {Of(kA, 1)}}));
}

// A server without norms cannot measure a mean, and a server with norms must not apply a mean
// before clipping it.
TEST(Participant, RefusesACommitThatIsMeasuredUnlikeItsState) {
  for (const bool measured : {false, true}) {
    Participant participant(1);
    participant.Fill(0s, 3, 5, false, measured);
    participant.Staged(3, 5, Of(kA, 1));
    const ParticipantActions actions = participant.OnMessage(Commit{3, 5, {Of(kA, 1)}, !measured});
    EXPECT_FALSE(actions.measure) << measured;
    EXPECT_FALSE(actions.apply) << measured;
    EXPECT_TRUE(actions.voided) << measured;
  }
}

TEST(Participant, ForgetsWhatItMeasuredWithItsState) {
  Participant participant(1);
  participant.Fill(0s, 3, 5, false, true);
  participant.Staged(3, 5, Of(kA, 1));
  participant.OnMessage(Commit{3, 5, {Of(kA, 1)}, true});
  participant.Measured(3, 5, {4});
  EXPECT_TRUE(participant.OnMessage(Abort{3}).voided);
  EXPECT_TRUE(participant.Measured(3, 5, {4}).messages.empty());
  participant.Fill(0s, 4, 5, false, true);
  EXPECT_FALSE(participant.OnMessage(Totals{3, 5, {4}}).apply);
  EXPECT_FALSE(participant.OnMessage(Totals{4, 5, {4}}).apply);
  EXPECT_TRUE(participant.Wants(4, 5, Of(kA, 1)));
}

TEST_F(CoordinatorTest, ARestartedTaskGoesOnAfterWhatIsCertainToCount) {
  Begin(2);
  const auto report = [&](int server, uint64_t sequence, int64_t drawn) {
    return coordinator_.OnMessage(server, StagedReport{1, 5, Of(kA, sequence), drawn});
  };
  coordinator_.Join(kA, 1);
  coordinator_.Join(kB, 1);
  report(0, 1, 7);
  EXPECT_EQ(coordinator_.DrawnBy(kA, /*backups=*/false), 0);
  report(1, 1, int64_t{1} << 62);  // only ps 0 keeps positions
  EXPECT_EQ(coordinator_.DrawnBy(kA, /*backups=*/false), 7);
  report(0, 2, 8);
  // The second gradient did not reach server 1 before its worker's process died. The new process
  // computes the eighth batch again, so this gradient must not be used if it still arrives.
  coordinator_.Join(kA, 2);
  EXPECT_EQ(coordinator_.DrawnBy(kA, /*backups=*/false), 7);
  EXPECT_TRUE(Committed(report(1, 2, 8)).empty());
  EXPECT_TRUE(Committed(report(0, 2, 8)).empty());
  EXPECT_EQ(Committed(Stage(kB, 1)), (std::vector{Of(kA, 1), Of(kB, 1)}));
  EXPECT_EQ(coordinator_.DrawnBy(kA, /*backups=*/false), 0);
}

// During a hold, more contributions may be complete than the step needs. The batches of the surplus
// contributions, like those of dropped ones (see Participant), count as drawn only if there are
// backup workers.
TEST_F(CoordinatorTest, TheSurplusCountsAsDrawnOnlyIfThereAreBackupWorkers) {
  Begin(2);
  for (const Worker& worker : {kA, kB, kC}) coordinator_.Join(worker, 1);
  coordinator_.Hold(0s, kA);
  int64_t drawn = 7;
  for (const Worker& worker : {kC, kA, kB}) {
    for (int server : {0, 1}) {
      coordinator_.OnMessage(server, StagedReport{1, 5, Of(worker, 1), drawn});
    }
    ++drawn;
  }
  EXPECT_EQ(coordinator_.DrawnBy(kC, /*backups=*/false), 7);
  EXPECT_EQ(coordinator_.DrawnBy(kA, /*backups=*/false), 8);
  EXPECT_EQ(coordinator_.DrawnBy(kB, /*backups=*/false), 0);
  EXPECT_EQ(coordinator_.DrawnBy(kB, /*backups=*/true), 9);
  EXPECT_EQ(Committed(coordinator_.Release(kA)), (std::vector{Of(kA, 1), Of(kC, 1)}));
}

TEST(Participant, SaysWhichBatchesCountAsDrawn) {
  for (const bool backups : {false, true}) {
    Participant participant(1);
    participant.Fill(0s, 3, 5, backups);
    participant.Staged(3, 5, Of(kA, 1), 7);
    participant.Staged(3, 5, Of(kB, 1), 9);
    participant.Staged(3, 5, Of(kC, 1));
    participant.OnMessage(Commit{3, 5, {Of(kB, 1), Of(kC, 1)}});
    using List = std::vector<Drawn>;
    EXPECT_EQ(participant.Applied(3, 5).drawn,
              backups ? List({{kA, 7}, {kB, 9}}) : List({{kB, 9}}));
    // This contribution arrives after its step was applied.
    EXPECT_EQ(participant.Staged(3, 5, Of(kA, 2), 8).drawn, backups ? List({{kA, 8}}) : List());
  }
}

}  // namespace
}  // namespace tfjob::ps::protocol
