#include "runtime/ps/protocol/messages.h"

#include <bit>
#include <cmath>
#include <sstream>

namespace tfjob::ps::protocol {
namespace {

// The largest number of names or of sums of squares in a message. A commit with more names, or
// without names, is treated as unreadable.
constexpr size_t kMostNames = 1 << 20;

std::ostream& operator<<(std::ostream& out, const Name& name) {
  return out << ' ' << name.worker.type << ' ' << name.worker.index << ' ' << name.incarnation
             << ' ' << name.sequence;
}

std::istream& operator>>(std::istream& in, Name& name) {
  return in >> name.worker.type >> name.worker.index >> name.incarnation >> name.sequence;
}

// Writes the bits of the numbers, so that all servers compute with exactly the same numbers.
std::ostream& operator<<(std::ostream& out, const std::vector<double>& numbers) {
  out << ' ' << numbers.size();
  for (const double number : numbers) out << ' ' << std::bit_cast<uint64_t>(number);
  return out;
}

std::istream& operator>>(std::istream& in, std::vector<double>& numbers) {
  size_t count = 0;
  if (in >> count && count > kMostNames) in.setstate(std::ios::failbit);
  for (uint64_t bits = 0; in && numbers.size() < count;) {
    if (in >> bits) numbers.push_back(std::bit_cast<double>(bits));
  }
  return in;
}

// Reads the learning rate at the end of a commit, if it has one. Returns false if what follows is
// not a learning rate.
bool ReadRate(std::istream& in, std::optional<double>& rate) {
  std::string key;
  uint64_t bits = 0;
  if ((in >> std::ws).eof()) {
    in.clear(in.rdstate() & ~std::ios::failbit);
    return true;
  }
  if (!(in >> key >> bits) || key != "rate") return false;
  rate = std::bit_cast<double>(bits);
  return std::isfinite(*rate) && *rate >= 0;
}

template <typename Message>
std::optional<Message> IfGood(const std::istream& in, Message message) {
  if (in.fail()) return std::nullopt;
  return message;
}

}  // namespace

std::string Encode(const ToCoordinator& message) {
  std::ostringstream out;
  if (const auto* hello = std::get_if<Hello>(&message)) {
    out << "hello " << hello->incarnation << ' ' << hello->epoch << ' ' << hello->step;
  } else if (const auto* staged = std::get_if<StagedReport>(&message)) {
    out << "staged " << staged->epoch << ' ' << staged->step << staged->name << ' '
        << staged->drawn;
  } else if (const auto* applied = std::get_if<AppliedReport>(&message)) {
    out << "applied " << applied->epoch << ' ' << applied->step;
  } else if (const auto* squares = std::get_if<SquaresReport>(&message)) {
    out << "squares " << squares->epoch << ' ' << squares->step << squares->squares;
  }
  return out.str();
}

std::string Encode(const ToParticipant& message) {
  std::ostringstream out;
  if (const auto* commit = std::get_if<Commit>(&message)) {
    out << (commit->measured ? "measure " : "commit ") << commit->epoch << ' ' << commit->step
        << ' ' << commit->set.size();
    for (const Name& name : commit->set) out << name;
    if (commit->learning_rate) out << " rate " << std::bit_cast<uint64_t>(*commit->learning_rate);
  } else if (const auto* abort = std::get_if<Abort>(&message)) {
    out << "abort " << abort->epoch;
  } else if (const auto* merge = std::get_if<Merge>(&message)) {
    out << "merge " << merge->epoch << ' ' << merge->step << merge->into << merge->from;
  } else if (const auto* totals = std::get_if<Totals>(&message)) {
    out << "totals " << totals->epoch << ' ' << totals->step << totals->squares;
  } else if (const auto* forget = std::get_if<Forget>(&message)) {
    out << "forget " << forget->epoch << ' ' << forget->step << forget->name;
  }
  return out.str();
}

std::optional<ToCoordinator> DecodeToCoordinator(const std::string& text) {
  std::istringstream in(text);
  std::string kind;
  in >> kind;
  if (kind == "hello") {
    Hello hello;
    in >> hello.incarnation >> hello.epoch >> hello.step;
    return IfGood<ToCoordinator>(in, hello);
  }
  if (kind == "staged") {
    StagedReport staged;
    in >> staged.epoch >> staged.step >> staged.name >> staged.drawn;
    return IfGood<ToCoordinator>(in, staged);
  }
  if (kind == "applied") {
    AppliedReport applied;
    in >> applied.epoch >> applied.step;
    return IfGood<ToCoordinator>(in, applied);
  }
  if (kind == "squares") {
    SquaresReport squares;
    in >> squares.epoch >> squares.step >> squares.squares;
    return IfGood<ToCoordinator>(in, std::move(squares));
  }
  return std::nullopt;
}

std::optional<ToParticipant> DecodeToParticipant(const std::string& text) {
  std::istringstream in(text);
  std::string kind;
  in >> kind;
  if (kind == "commit" || kind == "measure") {
    Commit commit;
    commit.measured = kind == "measure";
    size_t count = 0;
    in >> commit.epoch >> commit.step >> count;
    if (in.fail() || count == 0 || count > kMostNames) return std::nullopt;
    for (size_t i = 0; i < count && !in.fail(); ++i) in >> commit.set.emplace_back();
    if (!in.fail() && !ReadRate(in, commit.learning_rate)) return std::nullopt;
    return IfGood<ToParticipant>(in, std::move(commit));
  }
  if (kind == "abort") {
    Abort abort;
    in >> abort.epoch;
    return IfGood<ToParticipant>(in, abort);
  }
  if (kind == "merge") {
    Merge merge;
    in >> merge.epoch >> merge.step >> merge.into >> merge.from;
    return IfGood<ToParticipant>(in, merge);
  }
  if (kind == "totals") {
    Totals totals;
    in >> totals.epoch >> totals.step >> totals.squares;
    return IfGood<ToParticipant>(in, std::move(totals));
  }
  if (kind == "forget") {
    Forget forget;
    in >> forget.epoch >> forget.step >> forget.name;
    return IfGood<ToParticipant>(in, std::move(forget));
  }
  return std::nullopt;
}

}  // namespace tfjob::ps::protocol
