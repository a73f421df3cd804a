#include "runtime/collectives/membership/membership_messages.h"

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "runtime/base/json.h"
#include "runtime/state/run_failure.h"

namespace tfjob::collectives {
namespace {

constexpr size_t kMostNameBytes = 256, kMostTextBytes = size_t{1} << 20;
constexpr int64_t kMostNumber = int64_t{1} << 62;
// A leader continues from the highest generation number that it receives. Because of this limit,
// its numbers never reach kMostNumber.
constexpr int64_t kMostGeneration = kMostNumber / 2;

Json ToJson(const Member& member) {
  return {{"task", member.task},
          {"address", member.address},
          {"incarnation", member.incarnation},
          {"step", member.step},
          {"stateGeneration", member.state_generation}};
}

Json ToJson(const std::vector<KnownProcess>& processes) {
  Json list = Json::array();
  for (const KnownProcess& process : processes) {
    list.push_back({{"task", process.task},
                    {"incarnation", process.incarnation},
                    {"replaced", process.replaced}});
  }
  return list;
}

Json ToJson(const std::vector<PastGeneration>& past) {
  Json list = Json::array();
  for (const PastGeneration& generation : past) {
    Json members = Json::array();
    for (const Participant& member : generation.members) {
      members.push_back({{"task", member.task}, {"incarnation", member.incarnation}});
    }
    list.push_back({{"generation", generation.generation},
                    {"shared", generation.shared},
                    {"resigned", generation.resigned},
                    {"members", std::move(members)}});
  }
  return list;
}

Json ToJson(const std::vector<ResignedProcess>& processes) {
  Json list = Json::array();
  for (const ResignedProcess& process : processes) {
    list.push_back({{"task", process.task},
                    {"incarnation", process.incarnation},
                    {"generation", process.generation}});
  }
  return list;
}

struct EncodeToLeader {
  Json operator()(const JoinRequest& m) const {
    return {{"kind", "join"},
            {"request", m.request},
            {"step", m.step},
            {"stateGeneration", m.state_generation},
            {"agreement", m.agreement},
            {"address", m.address},
            {"known", ToJson(m.known)},
            {"past", ToJson(m.past)},
            {"resigned", ToJson(m.resigned)},
            {"beginsAgain", m.begins_again},
            {"claim", m.claim},
            {"lastGeneration", m.last_generation}};
  }
  Json operator()(const ReadyReport& m) const {
    return {{"kind", "ready"}, {"generation", m.generation}};
  }
  Json operator()(const FailureReport& m) const {
    return {
        {"kind", "failure"}, {"generation", m.generation}, {"why", m.why}, {"departs", m.departs}};
  }
  Json operator()(const WaitReport& m) const {
    return {{"kind", "wait"},
            {"generation", m.generation},
            {"operation", m.operation},
            {"name", m.name},
            {"on", m.on},
            {"microseconds", m.microseconds}};
  }
  Json operator()(const UnreachableReport& m) const {
    return {{"kind", "unreachable"}, {"generation", m.generation}, {"rank", m.rank}};
  }
  Json operator()(const PhaseReport& m) const {
    return {{"kind", "phase"},
            {"phase", state::Name(m.phase)},
            {"microseconds", m.microseconds},
            {"left", m.left}};
  }
  Json operator()(const LeaveNotice& m) const {
    return {{"kind", "leave"}, {"lastGeneration", m.last_generation}};
  }
  Json operator()(const DepartNotice& m) const {
    return {{"kind", "depart"}, {"lastGeneration", m.last_generation}};
  }
  Json operator()(const RunFailureReport& m) const {
    return {{"kind", "runFailure"}, {"words", m.words}};
  }
};

struct EncodeToMember {
  Json operator()(const FormOrder& m) const {
    Json members = Json::array();
    for (const Member& member : m.members) members.push_back(ToJson(member));
    return {
        {"kind", "form"},     {"request", m.request},          {"generation", m.generation},
        {"source", m.source}, {"members", std::move(members)}, {"replaced", ToJson(m.replaced)}};
  }
  Json operator()(const GoOrder& m) const { return {{"kind", "go"}, {"generation", m.generation}}; }
  Json operator()(const WithdrawOrder& m) const {
    return {
        {"kind", "withdraw"}, {"generation", m.generation}, {"why", m.why}, {"departs", m.departs}};
  }
  Json operator()(const RefusalOrder& m) const { return {{"kind", "refusal"}, {"why", m.why}}; }
  Json operator()(const ClaimOrder& m) const { return {{"kind", "claim"}, {"claim", m.claim}}; }
  Json operator()(const AwaitedNotice& m) const {
    return {{"kind", "awaited"}, {"peers", m.peers}, {"address", m.address}, {"text", m.text}};
  }
  Json operator()(const StuckNotice& m) const {
    return {{"kind", "stuck"},
            {"peer", m.peer},
            {"address", m.address},
            {"text", m.text},
            {"busy", m.busy}};
  }
  Json operator()(const FarewellReceipt& m) const {
    return {{"kind", "farewell"}, {"departs", m.departs}};
  }
  Json operator()(const EndOrder& m) const {
    return {{"kind", "end"}, {"failed", m.failed}, {"words", m.words}};
  }
};

// Returns whether the mention of a rank at `at` is complete. A mention of "rank 1" that is part of
// "rank 12" or "crank 1" is not.
bool MentionsAt(const std::string& text, size_t at, const std::string& mention) {
  const size_t end = at + mention.size();
  const bool begins = at == 0 || !absl::ascii_isalnum(static_cast<unsigned char>(text[at - 1]));
  const bool ends =
      end == text.size() || !absl::ascii_isdigit(static_cast<unsigned char>(text[end]));
  return begins && ends;
}

bool Mentions(const std::string& text, const std::string& mention) {
  for (size_t at = text.find(mention); at != std::string::npos; at = text.find(mention, at + 1)) {
    if (MentionsAt(text, at, mention)) return true;
  }
  return false;
}

// Reads the fields of one message. After the first error, the functions have no effect.
class Fields {
 public:
  explicit Fields(JsonField root) : root_(std::move(root)) {}

  std::string Text(std::string_view name, size_t most = kMostTextBytes) {
    StatusOr<std::string> text = root_[name].String();
    if (!text.ok()) return Fail<std::string>(text.status());
    if (text->size() > most) return Fail<std::string>(DataLoss(name, ": too long"));
    return *std::move(text);
  }
  // Returns a string to show to users.
  std::string Words(std::string_view name) { return state::PlainWords(Text(name)); }
  // Returns a number from `least` to kMostNumber.
  int64_t Number(std::string_view name, int64_t least, int64_t most = kMostNumber) {
    StatusOr<int64_t> number = root_[name].Int();
    if (!number.ok()) return Fail<int64_t>(number.status());
    if (*number >= least && *number <= most) return *number;
    return Fail<int64_t>(DataLoss(name, ": expected ", least, " to ", most));
  }
  int Rank(std::string_view name, int least) {
    const int64_t rank = Number(name, least);
    if (rank < static_cast<int64_t>(kMostMembers)) return static_cast<int>(rank);
    return Fail<int>(DataLoss(name, ": not a rank"));
  }
  // Returns an address, "host:port", in a form that may be shown to users.
  std::string Address(std::string_view name) {
    std::string address = Text(name, kMostNameBytes);
    if (address == state::PlainWords(address)) return address;
    return Fail<std::string>(DataLoss(name, ": not an address"));
  }
  state::WorkPhase Phase(std::string_view name) {
    const std::optional<state::WorkPhase> phase = state::ParseWorkPhase(Text(name, kMostNameBytes));
    return phase ? *phase : Fail<state::WorkPhase>(DataLoss(name, ": not a phase"));
  }
  bool Flag(std::string_view name) {
    StatusOr<bool> flag = root_[name].Bool();
    return flag.ok() ? *flag : Fail<bool>(flag.status());
  }
  std::vector<Member> Members(std::string_view name) {
    StatusOr<std::vector<JsonField>> elements = root_[name].Elements();
    if (!elements.ok()) return Fail<std::vector<Member>>(elements.status());
    if (elements->empty() || elements->size() > kMostMembers) {
      return Fail<std::vector<Member>>(DataLoss(name, ": expected 1 to ", kMostMembers));
    }
    std::vector<Member> members;
    for (const JsonField& element : *elements) {
      Fields fields(element);
      members.push_back({.task = fields.Text("task", kMostNameBytes),
                         .address = fields.Address("address"),
                         .incarnation = fields.Number("incarnation", 0),
                         .step = fields.Number("step", -1),
                         .state_generation = fields.Number("stateGeneration", 0)});
      if (!fields.status_.ok()) return Fail<std::vector<Member>>(fields.status_);
    }
    return members;
  }

  std::vector<KnownProcess> Processes(std::string_view name) {
    StatusOr<std::vector<JsonField>> elements = root_[name].Elements();
    if (!elements.ok()) return Fail<std::vector<KnownProcess>>(elements.status());
    if (elements->size() > kMostKnown) {
      return Fail<std::vector<KnownProcess>>(DataLoss(name, ": expected at most ", kMostKnown));
    }
    std::vector<KnownProcess> processes;
    for (const JsonField& element : *elements) {
      Fields fields(element);
      processes.push_back({.task = fields.Text("task", kMostNameBytes),
                           .incarnation = fields.Number("incarnation", 0),
                           .replaced = fields.Flag("replaced")});
      if (!fields.status_.ok()) return Fail<std::vector<KnownProcess>>(fields.status_);
    }
    return processes;
  }

  std::vector<ResignedProcess> Resigned(std::string_view name) {
    StatusOr<std::vector<JsonField>> elements = root_[name].Elements();
    if (!elements.ok()) return Fail<std::vector<ResignedProcess>>(elements.status());
    if (elements->size() > kMostMembers) {
      return Fail<std::vector<ResignedProcess>>(
          DataLoss(name, ": expected at most ", kMostMembers));
    }
    std::vector<ResignedProcess> processes;
    for (const JsonField& element : *elements) {
      Fields fields(element);
      processes.push_back({.task = fields.Text("task", kMostNameBytes),
                           .incarnation = fields.Number("incarnation", 0),
                           .generation = fields.Generation("generation")});
      if (!fields.status_.ok()) return Fail<std::vector<ResignedProcess>>(fields.status_);
    }
    return processes;
  }
  // Returns the number of a generation that a process has seen; 0 if it has seen none.
  int64_t Generation(std::string_view name) { return Number(name, 0, kMostGeneration); }

  std::vector<PastGeneration> Past(std::string_view name) {
    StatusOr<std::vector<JsonField>> elements = root_[name].Elements();
    if (!elements.ok()) return Fail<std::vector<PastGeneration>>(elements.status());
    size_t participants = 0;
    std::vector<PastGeneration> past;
    for (const JsonField& element : *elements) {
      Fields fields(element);
      PastGeneration& generation = past.emplace_back();
      generation.generation = fields.Number("generation", 1, kMostGeneration);
      generation.shared = fields.Flag("shared");
      generation.resigned = fields.Flag("resigned");
      generation.members = fields.Participants("members");
      participants += generation.members.size();
      if (!fields.status_.ok()) return Fail<std::vector<PastGeneration>>(fields.status_);
      if (participants > kMostKnown) {
        return Fail<std::vector<PastGeneration>>(
            DataLoss(name, ": expected at most ", kMostKnown, " members"));
      }
    }
    return past;
  }

  template <typename Variant, typename Kind>
  StatusOr<Variant> Finish(Kind message) const {
    if (!status_.ok()) return DataLoss("an unreadable message: ", Message(status_));
    return Variant(std::move(message));
  }

 private:
  std::vector<Participant> Participants(std::string_view name) {
    StatusOr<std::vector<JsonField>> elements = root_[name].Elements();
    if (!elements.ok()) return Fail<std::vector<Participant>>(elements.status());
    if (elements->empty() || elements->size() > kMostMembers) {
      return Fail<std::vector<Participant>>(DataLoss(name, ": expected 1 to ", kMostMembers));
    }
    std::vector<Participant> participants;
    for (const JsonField& element : *elements) {
      Fields fields(element);
      participants.push_back({.task = fields.Text("task", kMostNameBytes),
                              .incarnation = fields.Number("incarnation", 0)});
      if (!fields.status_.ok()) return Fail<std::vector<Participant>>(fields.status_);
    }
    return participants;
  }

  template <typename T>
  T Fail(const Status& why) {
    if (status_.ok()) status_ = why;
    return T{};
  }

  const JsonField root_;
  Status status_;
};

StatusOr<Json> ParseMessage(std::string_view text) {
  if (text.size() > kMostMessageBytes) return DataLoss("a message of ", text.size(), " bytes");
  StatusOr<Json> document = ParseJson(text, "a message");
  if (!document.ok()) return DataLoss("an unreadable message: ", Message(document.status()));
  return document;
}

// Decodes the messages that DecodeToLeader does not decode itself.
StatusOr<ToLeader> DecodeNotice(const std::string& kind, Fields& fields) {
  if (kind == "unreachable") {
    UnreachableReport report;
    report.generation = fields.Number("generation", 1);
    report.rank = fields.Rank("rank", 0);
    return fields.Finish<ToLeader>(report);
  }
  if (kind == "phase") {
    PhaseReport report;
    report.phase = fields.Phase("phase");
    report.microseconds = fields.Number("microseconds", 0);
    report.left = fields.Number("left", 0);
    return fields.Finish<ToLeader>(report);
  }
  if (kind == "leave") {
    return fields.Finish<ToLeader>(LeaveNotice{fields.Generation("lastGeneration")});
  }
  if (kind == "depart") {
    DepartNotice depart;
    depart.last_generation = fields.Generation("lastGeneration");
    return fields.Finish<ToLeader>(depart);
  }
  if (kind == "runFailure") {
    return fields.Finish<ToLeader>(RunFailureReport{fields.Words("words")});
  }
  return DataLoss("an unreadable message");
}

}  // namespace

bool FormOrder::operator==(const FormOrder& other) const {
  return Encode(ToMember(*this)) == Encode(ToMember(other));
}

std::string Encode(const ToLeader& message) {
  return PrintJson(std::visit(EncodeToLeader(), message));
}

std::string Encode(const ToMember& message) {
  return PrintJson(std::visit(EncodeToMember(), message));
}

StatusOr<ToLeader> DecodeToLeader(std::string_view text) {
  ASSIGN_OR_RETURN(const Json document, ParseMessage(text));
  Fields fields{JsonField(document)};
  const std::string kind = fields.Text("kind", kMostNameBytes);
  if (kind == "join") {
    JoinRequest join;
    join.request = fields.Number("request", 0);
    join.step = fields.Number("step", -1);
    join.state_generation = fields.Number("stateGeneration", 0);
    join.agreement = fields.Text("agreement", kMostAgreementBytes);
    join.address = fields.Address("address");
    join.begins_again = fields.Flag("beginsAgain");
    join.claim = fields.Number("claim", 0);
    join.last_generation = fields.Generation("lastGeneration");
    join.known = fields.Processes("known");
    join.past = fields.Past("past");
    join.resigned = fields.Resigned("resigned");
    return fields.Finish<ToLeader>(std::move(join));
  }
  if (kind == "ready") {
    return fields.Finish<ToLeader>(ReadyReport{fields.Number("generation", 1)});
  }
  if (kind == "failure") {
    FailureReport failure;
    failure.generation = fields.Number("generation", 1);
    failure.why = fields.Words("why");
    failure.departs = fields.Flag("departs");
    return fields.Finish<ToLeader>(std::move(failure));
  }
  if (kind == "wait") {
    WaitReport wait;
    wait.generation = fields.Number("generation", 1);
    wait.operation = fields.Number("operation", 0);
    wait.name = state::PlainWords(fields.Text("name", kMostNameBytes));
    wait.on = fields.Rank("on", -1);
    wait.microseconds = fields.Number("microseconds", 0);
    return fields.Finish<ToLeader>(std::move(wait));
  }
  return DecodeNotice(kind, fields);
}

StatusOr<ToMember> DecodeToMember(std::string_view text) {
  ASSIGN_OR_RETURN(const Json document, ParseMessage(text));
  Fields fields{JsonField(document)};
  const std::string kind = fields.Text("kind", kMostNameBytes);
  if (kind == "form") {
    FormOrder form;
    form.request = fields.Number("request", 0);
    form.generation = fields.Number("generation", 1);
    form.source = fields.Rank("source", 0);
    form.members = fields.Members("members");
    form.replaced = fields.Processes("replaced");
    if (static_cast<size_t>(form.source) >= form.members.size()) {
      return DataLoss("an unreadable message: source: not a member");
    }
    return fields.Finish<ToMember>(std::move(form));
  }
  if (kind == "go") return fields.Finish<ToMember>(GoOrder{fields.Number("generation", 1)});
  if (kind == "withdraw") {
    WithdrawOrder withdraw;
    withdraw.generation = fields.Number("generation", 1);
    withdraw.why = fields.Words("why");
    withdraw.departs = fields.Flag("departs");
    return fields.Finish<ToMember>(std::move(withdraw));
  }
  if (kind == "refusal") return fields.Finish<ToMember>(RefusalOrder{fields.Words("why")});
  if (kind == "claim") return fields.Finish<ToMember>(ClaimOrder{fields.Number("claim", 1)});
  if (kind == "awaited") {
    AwaitedNotice awaited;
    awaited.peers = fields.Words("peers");
    awaited.address = fields.Text("address");
    awaited.text = fields.Words("text");
    return fields.Finish<ToMember>(std::move(awaited));
  }
  if (kind == "stuck") {
    StuckNotice stuck;
    stuck.peer = fields.Words("peer");
    stuck.address = fields.Text("address");
    stuck.text = fields.Words("text");
    stuck.busy = fields.Flag("busy");
    return fields.Finish<ToMember>(std::move(stuck));
  }
  if (kind == "farewell") {
    return fields.Finish<ToMember>(FarewellReceipt{fields.Flag("departs")});
  }
  if (kind == "end") {
    EndOrder end;
    end.failed = fields.Flag("failed");
    end.words = fields.Words("words");
    return fields.Finish<ToMember>(std::move(end));
  }
  return DataLoss("an unreadable message");
}

std::string Describe(const Member& member) {
  if (member.address.empty()) return member.task;
  return StrCat(member.task, " (", member.address, ")");
}

std::string NameRanks(const std::string& message, const std::vector<Member>& members) {
  std::string legend;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const std::string mention = StrCat("rank ", rank);
    if (!Mentions(message, mention)) continue;
    legend += StrCat(legend.empty() ? "" : ", ", mention, " is ", Describe(members[rank]));
  }
  return legend.empty() ? message : StrCat(message, " (", legend, ")");
}

}  // namespace tfjob::collectives
