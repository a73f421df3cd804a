// Checks the state machines of the parameter servers with arbitrary messages. Each line of an input
// is an event. The first character selects the event; the remaining ones are a message or a number.
//   c  the coordinator receives the message from server 0, C from server 1
//   p  the participant receives the message
//   s  the contribution named by the message, a StagedReport, has arrived at the participant
//   a  the participant's oldest apply has been carried out
//   m  the measurement that the participant was asked for is complete
//   f  both machines are filled with a state of this epoch; v: their state becomes void
//   j  this worker joins; l: it leaves; h: it asks for the hold; r: it releases the hold
//   t  the time advances by this many milliseconds
// The properties:
//   - Nothing crashes.
//   - A message that is understood and then written reads back as the same message.
//   - Within an epoch, no step decreases.
#include <charconv>
#include <deque>
#include <optional>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/protocol/participant.h"

namespace tfjob::fuzz {
namespace {

namespace protocol = ps::protocol;

class Servers {
 public:
  void On(char event, const std::string& text) {
    const int64_t epoch = participant_.epoch(), step = participant_.step();
    const int64_t coordinator_step = coordinator_.step();
    filled_ = false;
    Messages(event, text);
    Workers(event, Number(text));
    ENFORCE(participant_.epoch() != epoch || filled_ || participant_.step() >= step,
            "a participant must not go back");
    ENFORCE(filled_ || coordinator_.step() >= coordinator_step, "a coordinator must not go back");
  }

 private:
  static int64_t Number(const std::string& text) {
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  // Checks that an encoded message can be decoded, and that encoding it again yields the same text.
  // Compares texts rather than messages, because a sum of squares may be NaN, which is not equal to
  // itself.
  template <typename Message, typename Decode>
  static void CheckSurvives(const Message& message, const Decode& decode) {
    const std::string text = Encode(message);
    const auto read = decode(text);
    ENFORCE(read && read->index() == message.index() && Encode(*read) == text,
            "a message survives");
  }

  void Messages(char event, const std::string& text) {
    const auto up = protocol::DecodeToCoordinator(text);
    const auto down = protocol::DecodeToParticipant(text);
    if (up) CheckSurvives(*up, protocol::DecodeToCoordinator);
    if (down) CheckSurvives(*down, protocol::DecodeToParticipant);
    if (up && event == 'c') Do(coordinator_.OnMessage(0, *up));
    if (up && event == 'C') Do(coordinator_.OnMessage(1, *up));
    if (down && event == 'p') Do(participant_.OnMessage(*down));
    const auto* staged = up ? std::get_if<protocol::StagedReport>(&*up) : nullptr;
    if (staged == nullptr || event != 's' || staged->step < 0) return;
    (void)participant_.Wants(staged->epoch, staged->step, staged->name);
    Do(participant_.Staged(staged->epoch, staged->step, staged->name));
  }

  void Workers(char event, int64_t number) {
    const protocol::Worker worker{"worker", static_cast<int32_t>(number & 7)};
    if (event == 'j') Do(coordinator_.Join(worker, 1));
    if (event == 'l') Do(coordinator_.Leave(worker, 1));
    if (event == 'h') Do(coordinator_.Hold(now_, worker));
    if (event == 'r') Do(coordinator_.Release(worker));
    if (event == 'v') Void();
    if (event == 'f' && number > 0) Fill(number);
    if (event == 't') Tick(std::chrono::milliseconds(number & 0xFFFF));
    if (event == 'a' && !applies_.empty()) Apply();
    if (event == 'm' && measure_) Measure();
  }

  void Void() {
    filled_ = true;
    applies_.clear();
    measure_.reset();
    Do(participant_.Void());
    Do(coordinator_.Void());
  }
  void Fill(int64_t epoch) {
    filled_ = true;
    applies_.clear();
    measure_.reset();
    Do(participant_.Fill(now_, epoch, 0));
    Do(coordinator_.Fill(epoch, 0, static_cast<int>(epoch & 3) + 1, (epoch & 4) != 0,
                         static_cast<size_t>(epoch & 8) / 4));
  }
  void Tick(Duration by) {
    now_ += by;
    Do(participant_.Tick(now_));
    Do(coordinator_.Tick(now_));
  }
  void Apply() {
    const protocol::Commit commit = applies_.front();
    applies_.pop_front();
    Do(participant_.Applied(commit.epoch, commit.step));
  }
  void Measure() {
    const protocol::Commit commit = *std::exchange(measure_, std::nullopt);
    Do(participant_.Measured(commit.epoch, commit.step, {0.5, 2}));
  }

  void Do(const protocol::ParticipantActions& actions) {
    if (actions.voided) applies_.clear();
    if (actions.voided) measure_.reset();
    if (actions.measure) measure_ = actions.measure;
    if (actions.apply) applies_.push_back(*actions.apply);
  }
  void Do(const protocol::CoordinatorActions& actions) {
    for (const auto& [server, message] : actions.messages) {
      ENFORCE(server >= 0 && server < coordinator_.servers(), "a message must have a receiver");
    }
  }

  protocol::Coordinator coordinator_{2};
  protocol::Participant participant_{1};
  std::deque<protocol::Commit> applies_;
  std::optional<protocol::Commit> measure_;
  Duration now_{0};
  bool filled_ = false;
};

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  tfjob::fuzz::Servers servers;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.empty()) servers.On(line[0], std::string(line.substr(1)));
  }
  return 0;
}
