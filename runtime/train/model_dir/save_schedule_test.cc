// Replays transcripts. Each line is an event with its time in seconds and, after a colon, the
// schedule's answer: "10 step 5: write".
#include "runtime/train/model_dir/save_schedule.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tfjob::train {
namespace {

std::string Text(const SaveActions& actions, Duration now) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (actions.write) add("write");
  if (actions.mark) add("mark");
  if (!actions.warning.empty()) add("WARN " + actions.warning);
  if (!actions.note.empty()) add("note " + actions.note);
  if (actions.wake_at) add("wake in " + FormatDuration(*actions.wake_at - now));
  if (actions.result) add(actions.result->ok() ? "saved" : actions.result->ToString());
  return text.empty() ? "-" : text;
}

// Returns the schedule's answer to an event, as text.
std::string Feed(SaveSchedule& schedule, const std::string& event, std::istream& line,
                 Duration now) {
  int64_t step = 0;
  if (event == "ok") return Text(schedule.OnWritten(OkStatus(), now), now);
  if (event == "full") return Text(schedule.OnWritten(ResourceExhausted("disk full"), now), now);
  if (event == "time") return Text(schedule.OnTime(now), now);
  if (event == "require") return schedule.Require(), "";
  if (event == "resume") return schedule.Resume(), "";
  if (event == "begin-mark") return schedule.OnBeginMark(now), "";
  line >> step;
  if (event == "begin") return schedule.OnBegin(step, now), "";
  if (event == "restored") return schedule.OnRestored(step, now), "";
  if (event == "step") return Text(schedule.OnStep(step, now), now);
  if (event == "stop") return Text(schedule.OnStop(step, now), now);
  if (event == "end") return Text(schedule.OnEnd(step, now), now);
  return "no such event";
}

// Feeds the events of a transcript to a schedule, and returns the resulting transcript.
std::string Replay(const SavePolicy& policy, const std::string& transcript) {
  SaveSchedule schedule(policy, 0s);
  std::istringstream lines(transcript);
  std::string made;
  for (std::string text; std::getline(lines, text);) {
    const std::string asked = text.substr(0, text.find(':'));
    std::istringstream line(asked);
    int64_t seconds = 0;
    std::string event;
    line >> seconds >> event;
    const std::string answer = Feed(schedule, event, line, std::chrono::seconds(seconds));
    made += asked + (answer.empty() ? "" : ": " + answer) + "\n";
  }
  return made;
}

void ExpectTranscript(const SavePolicy& policy, const std::string& transcript) {
  EXPECT_EQ(Replay(policy, transcript), transcript);
}

TEST(SaveSchedule, SavesEveryTenMinutes) {
  ExpectTranscript({.every = 600s}, R"(0 step 1: -
599 step 2: -
600 step 3: write
600 begin 3
601 ok: -
602 step 4: -
1199 step 5: -
1200 step 6: write
)");
}

TEST(SaveSchedule, SavesEveryHundredStepsAndCountsFromARestore) {
  ExpectTranscript({.every = 600s, .every_steps = 100}, R"(0 restored 250
1 step 250: -
900 step 349: -
901 step 350: write
901 begin 352
902 ok: -
903 step 451: -
903 step 452: write
)");
}

TEST(SaveSchedule, SavesNothingIfBothIntervalsAreOffButForWhatIsRequired) {
  ExpectTranscript({.every = 0s}, R"(9999 step 7: -
9999 require
9999 step 7: write
9999 begin 7
9999 step 8: -
10000 ok: -
10000 step 9: -
)");
}

TEST(SaveSchedule, DefersWhatIsDueWhileAnotherIsWrittenAndTellsOnceThatTheDiskIsSlow) {
  ExpectTranscript({.every_steps = 10}, R"(0 step 10: write
0 begin 10
1 step 20: -
9 step 30: -
10 step 31: WARN the checkpoint of step 10 is still being written after 10s: the disk is slow or hangs; there is none yet
500 step 90: -
600 ok: -
600 step 91: write
)");
}

TEST(SaveSchedule, TriesAgainWithGrowingPausesWhileItTrains) {
  ExpectTranscript({.every = 600s}, R"(600 step 5: write
600 begin 5
601 full: WARN the checkpoint of step 5 could not be saved: disk full; there is none yet; training goes on; next attempt in 10s
610 step 6: -
611 step 7: write
611 begin 7
612 full: WARN the checkpoint of step 7 could not be saved: disk full; there is none yet; training goes on; next attempt in 20s
631 step 8: -
632 step 9: write
632 begin 9
633 ok: note the checkpoint of step 9 is saved; failed attempts before it: 2
1231 step 10: -
1232 step 11: write
)");
}

// The servers with the last state were lost before the state was saved.
TEST(SaveSchedule, TriesAgainAsBeforeIfTrainingGoesOnAfterAnEnd) {
  ExpectTranscript({.every = 600s}, R"(600 end 5: write
600 begin 5
601 full: WARN the checkpoint of step 5 could not be saved: disk full; there is none yet; next attempt in 10s
602 resume
611 step 4: write
611 begin 4
612 full: WARN the checkpoint of step 4 could not be saved: disk full; there is none yet; training goes on; next attempt in 20s
)");
}

TEST(SaveSchedule, PausesAtMostAsLongAsThePolicySays) {
  SaveSchedule schedule({.slowest_retry = 160s}, 0s);
  Duration now = 0s;
  std::string last;
  for (int i = 0; i < 8; ++i) {
    schedule.OnBegin(i, now);
    last = schedule.OnWritten(ResourceExhausted("full"), now).warning;
    now += 160s;
    EXPECT_TRUE(schedule.OnStep(i, now).write) << i;
  }
  EXPECT_NE(last.find("next attempt in 2m40s"), std::string::npos) << last;
}

TEST(SaveSchedule, ASaveThatIsDueDoesNotWaitForTheRetryOfAnother) {
  ExpectTranscript({.every_steps = 10}, R"(0 step 10: write
0 begin 10
0 full: WARN the checkpoint of step 10 could not be saved: disk full; there is none yet; training goes on; next attempt in 10s
1 step 19: -
1 step 20: write
)");
}

TEST(SaveSchedule, AStopWaitsForTheWriteAndMakesOneAttempt) {
  ExpectTranscript({}, R"(600 step 5: write
600 begin 5
601 stop 8: wake in 9s
605 full: WARN the checkpoint of step 5 could not be saved: disk full; there is none yet
605 time: write
605 begin 8
605 time: wake in 10s
615 time: WARN the checkpoint of step 8 is still being written after 10s: the disk is slow or hangs; there is none yet, wake in 10s
616 full: WARN the checkpoint of step 8 could not be saved: disk full; there is none yet
616 time: UNAVAILABLE: the checkpoint of step 8 was not saved: disk full; there is none yet
)");
}

TEST(SaveSchedule, AStopAfterASaveOfTheSameStepHasNothingToDo) {
  ExpectTranscript({}, R"(600 step 5: write
600 begin 5
601 ok: -
602 stop 5: saved
)");
}

TEST(SaveSchedule, TheEndSavesAndMarks) {
  ExpectTranscript({}, R"(7 end 90: write
7 begin 90
7 time: wake in 10s
8 ok: -
8 time: mark
8 begin-mark
9 ok: -
9 time: saved
)");
}

TEST(SaveSchedule, TheEndTriesEveryTenSecondsUntilThereIsRoom) {
  ExpectTranscript({.final_patience = 600s}, R"(0 restored 40
100 end 90: write
100 begin 90
101 full: WARN the checkpoint of step 90 could not be saved: disk full; the newest one is of step 40; next attempt in 10s
101 time: wake in 10s
111 time: write
111 begin 90
112 full: WARN the checkpoint of step 90 could not be saved: disk full; the newest one is of step 40; next attempt in 10s
112 time: wake in 10s
122 time: write
122 begin 90
123 ok: note the checkpoint of step 90 is saved; failed attempts before it: 2
123 time: mark
123 begin-mark
124 full: WARN the mark that the run is over at step 90 could not be saved: disk full; the newest one is of step 90; next attempt in 10s
124 time: wake in 10s
134 time: mark
)");
}

TEST(SaveSchedule, TheEndGivesUpWhenItsPatienceIsOverAndNamesTheStep) {
  ExpectTranscript({.final_patience = 15s}, R"(0 restored 40
100 end 90: write
100 begin 90
101 full: WARN the checkpoint of step 90 could not be saved: disk full; the newest one is of step 40; next attempt in 10s
101 time: wake in 10s
111 time: write
111 begin 90
112 full: WARN the checkpoint of step 90 could not be saved: disk full; the newest one is of step 40
112 time: wake in 3s
115 time: UNAVAILABLE: the checkpoint of step 90 was not saved: disk full; the newest one is of step 40
)");
}

TEST(SaveSchedule, WithoutPatienceTheEndMakesOneAttemptHoweverLongItTakes) {
  ExpectTranscript({.final_patience = 0s}, R"(100 end 90: write
100 begin 90
100 time: wake in 10s
5000 time: WARN the checkpoint of step 90 is still being written after 1h21m40s: the disk is slow or hangs; there is none yet, wake in 10s
5001 full: WARN the checkpoint of step 90 could not be saved: disk full; there is none yet
5001 time: UNAVAILABLE: the checkpoint of step 90 was not saved: disk full; there is none yet
)");
}

TEST(SaveSchedule, TheEndGivesUpOnAWriteThatDoesNotEnd) {
  ExpectTranscript({.final_patience = 60s}, R"(90 step 80: -
95 require
95 step 80: write
95 begin 80
100 end 90: wake in 5s
105 time: WARN the checkpoint of step 80 is still being written after 10s: the disk is slow or hangs; there is none yet, wake in 10s
150 ok: -
150 time: write
150 begin 90
150 time: wake in 10s
209 time: WARN the checkpoint of step 90 is still being written after 59s: the disk is slow or hangs; the newest one is of step 80, wake in 1s
210 time: UNAVAILABLE: the checkpoint of step 90 was not saved: its write does not end; the newest one is of step 80
)");
}

TEST(SaveSchedule, AStopDuringTheEndMakesOneMoreAttempt) {
  ExpectTranscript({}, R"(100 end 90: write
100 begin 90
101 full: WARN the checkpoint of step 90 could not be saved: disk full; there is none yet; next attempt in 10s
101 time: wake in 10s
103 stop 90: write
103 begin 90
104 ok: note the checkpoint of step 90 is saved; failed attempts before it: 1
104 time: saved
)");
}

// The state that is being written is newer than all checkpoints, so a lost state is restored from
// it.
TEST(SaveSchedule, AStateRestoredFromTheWriteInProgressIsNotSavedYet) {
  SaveSchedule schedule({}, 0s);
  schedule.OnBegin(7, 0s);
  schedule.OnRestored(7, 0s);
  EXPECT_EQ(schedule.saved_step(), std::nullopt);
  schedule.OnWritten(OkStatus(), 0s);
  EXPECT_EQ(schedule.saved_step(), 7);
}

TEST(SaveSchedule, TellsTheProblemUntilASaveSucceeds) {
  SaveSchedule schedule({}, 0s);
  EXPECT_EQ(schedule.problem(), "");
  schedule.OnBegin(7, 0s);
  schedule.OnWritten(ResourceExhausted("disk full"), 1s);
  EXPECT_EQ(schedule.problem(),
            "the checkpoint of step 7 could not be saved: disk full; there is none yet");
  schedule.OnBegin(8, 2s);
  EXPECT_NE(schedule.problem(), "");
  schedule.OnWritten(OkStatus(), 3s);
  EXPECT_EQ(schedule.problem(), "");
}

}  // namespace
}  // namespace tfjob::train
