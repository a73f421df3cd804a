#include <gtest/gtest.h>

#include <random>

#include "operator/kube/doubles/lease_candidate.h"

namespace tfjob::kube {
namespace {

using client::Verb;

// Simulates three candidates in steps of 100 ms. Each candidate may pause or lose its connection
// for a while, and individual requests or responses may be lost.
class Simulation {
 public:
  explicit Simulation(unsigned seed) : random_(seed) {
    for (const char* name : {"a", "b", "c"}) Add(name);
  }

  void Run(Duration length) {
    for (Duration now(0); now < length; now += 100ms) {
      for (size_t i = 0; i < candidates_.size(); ++i) Turn(i, now);
      clock_.Advance(100ms);
      if (Chance(200)) clock_.wall += Duration(1h) * static_cast<int>(random_() % 21 - 10);
      const int leaders = Leaders();
      ASSERT_LE(leaders, 1) << "at " << FormatDuration(now);
      led_ += leaders;
    }
  }
  int led() const { return led_; }

 private:
  struct Member {
    std::unique_ptr<Candidate> candidate;
    Duration due{0};
    Duration cut_until{0};
  };

  bool Chance(unsigned one_in) { return random_() % one_in == 0; }

  std::unique_ptr<Candidate> MakeCandidate(const std::string& name) {
    return std::make_unique<Candidate>(server_, name, clock_,
                                       [this] { return (random_() % 1000) / 1000.0; });
  }

  void Add(const std::string& name) { candidates_.push_back({MakeCandidate(name), {}, {}}); }

  int Leaders() {
    int leaders = 0;
    for (const Member& member : candidates_) leaders += member.candidate->leads();
    return leaders;
  }

  void Turn(size_t index, Duration now) {
    Member& member = candidates_[index];
    if (Chance(400)) {
      member.cut_until = now + 1s * (random_() % 30);
      member.candidate->Cut();
    }
    if (Chance(600)) member.due = now + 1s * (random_() % 40);  // paused for a while
    if (now >= member.cut_until) member.candidate->client.Clear();
    if (now < member.due) return;
    if (Chance(10)) {
      const Verb verb = Chance(2) ? Verb::kUpdate : Verb::kGet;
      member.candidate->client.Inject(FaultOf(verb, Unavailable("lost"), Chance(2)));
    }
    const std::optional<Duration> delay = member.candidate->Step();
    if (!delay) {
      // A process that has lost its lease exits, and another process starts.
      EXPECT_EQ(member.candidate->lost, 1);
      const std::string name = StrCat("new", ++restarts_);
      member = {MakeCandidate(name), now + 1s, {}};
      return;
    }
    member.due = now + *delay;
  }

  std::mt19937 random_;
  TestClock clock_;
  store::Store server_{StoreOptions()};
  std::vector<Member> candidates_;
  int restarts_ = 0;
  int led_ = 0;
};

TEST(LeaseSimulation, NeverTwoLeadAndMostlyOneDoes) {
  constexpr int kSeeds = 40;
  int led = 0;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.Run(300s);
    if (HasFatalFailure()) return;
    led += simulation.led();
  }
  EXPECT_GT(led, kSeeds * 3000 * 6 / 10);
}

}  // namespace
}  // namespace tfjob::kube
