#include "runtime/collectives/membership_messages.h"

#include <nlohmann/json.hpp>

#include "runtime/base/json.h"

namespace tfjob::collectives {
namespace {

constexpr size_t kMostNameBytes = 256, kMostTextBytes = size_t{1} << 20;
constexpr int64_t kMostNumber = int64_t{1} << 62;

Json ToJson(const Member& member) {
  return {{"task", member.task},
          {"address", member.address},
          {"incarnation", member.incarnation},
          {"step", member.step},
          {"stateGeneration", member.state_generation}};
}

struct EncodeToLeader {
  Json operator()(const JoinRequest& m) const {
    return {{"kind", "join"},
            {"request", m.request},
            {"step", m.step},
            {"stateGeneration", m.state_generation},
            {"agreement", m.agreement},
            {"lastGeneration", m.last_generation}};
  }
  Json operator()(const ReadyReport& m) const {
    return {{"kind", "ready"}, {"generation", m.generation}};
  }
  Json operator()(const FailureReport& m) const {
    return {{"kind", "failure"}, {"generation", m.generation}, {"why", m.why}};
  }
  Json operator()(const WaitReport& m) const {
    return {{"kind", "wait"},
            {"generation", m.generation},
            {"operation", m.operation},
            {"name", m.name},
            {"on", m.on},
            {"microseconds", m.microseconds}};
  }
  Json operator()(const LeaveNotice&) const { return {{"kind", "leave"}}; }
  Json operator()(const DepartNotice&) const { return {{"kind", "depart"}}; }
  Json operator()(const RunFailureReport& m) const {
    return {{"kind", "runFailure"}, {"words", m.words}};
  }
};

struct EncodeToMember {
  Json operator()(const FormOrder& m) const {
    Json members = Json::array();
    for (const Member& member : m.members) members.push_back(ToJson(member));
    return {{"kind", "form"},
            {"request", m.request},
            {"generation", m.generation},
            {"source", m.source},
            {"members", std::move(members)}};
  }
  Json operator()(const GoOrder& m) const { return {{"kind", "go"}, {"generation", m.generation}}; }
  Json operator()(const WithdrawOrder& m) const {
    return {{"kind", "withdraw"}, {"generation", m.generation}, {"why", m.why}};
  }
  Json operator()(const RefusalOrder& m) const { return {{"kind", "refusal"}, {"why", m.why}}; }
  Json operator()(const AwaitedNotice& m) const {
    return {{"kind", "awaited"}, {"peers", m.peers}, {"address", m.address}, {"text", m.text}};
  }
  Json operator()(const StuckNotice& m) const {
    return {{"kind", "stuck"}, {"peer", m.peer}, {"address", m.address}, {"text", m.text}};
  }
  Json operator()(const FarewellReceipt& m) const {
    return {{"kind", "farewell"}, {"departs", m.departs}};
  }
  Json operator()(const EndOrder& m) const {
    return {{"kind", "end"}, {"failed", m.failed}, {"words", m.words}};
  }
};

// Reads the fields of one message. After the first error, every further function does nothing.
class Fields {
 public:
  explicit Fields(const Json& document) : root_(document) {}

  std::string Text(std::string_view name, size_t most = kMostTextBytes) {
    StatusOr<std::string> text = root_[name].String();
    if (!text.ok()) return Fail<std::string>(text.status());
    if (text->size() > most) return Fail<std::string>(DataLoss(name, ": too long"));
    return *std::move(text);
  }
  // Returns a number from `least` to kMostNumber, so that the caller may add 1 to it.
  int64_t Number(std::string_view name, int64_t least) {
    StatusOr<int64_t> number = root_[name].Int();
    if (!number.ok()) return Fail<int64_t>(number.status());
    if (*number >= least && *number <= kMostNumber) return *number;
    return Fail<int64_t>(DataLoss(name, ": expected ", least, " to ", kMostNumber));
  }
  int Rank(std::string_view name, int least) {
    const int64_t rank = Number(name, least);
    if (rank < static_cast<int64_t>(kMostMembers)) return static_cast<int>(rank);
    return Fail<int>(DataLoss(name, ": not a rank"));
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
      Fields fields(*element.value());
      members.push_back({.task = fields.Text("task", kMostNameBytes),
                         .address = fields.Text("address", kMostNameBytes),
                         .incarnation = fields.Number("incarnation", 0),
                         .step = fields.Number("step", -1),
                         .state_generation = fields.Number("stateGeneration", 0)});
      if (!fields.status_.ok()) return Fail<std::vector<Member>>(fields.status_);
    }
    return members;
  }

  template <typename Variant, typename Kind>
  StatusOr<Variant> Finish(Kind message) const {
    if (!status_.ok()) return DataLoss("an unreadable message: ", Message(status_));
    return Variant(std::move(message));
  }

 private:
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
  Fields fields(document);
  const std::string kind = fields.Text("kind", kMostNameBytes);
  if (kind == "join") {
    JoinRequest join;
    join.request = fields.Number("request", 0);
    join.step = fields.Number("step", -1);
    join.state_generation = fields.Number("stateGeneration", 0);
    join.agreement = fields.Text("agreement", kMostAgreementBytes);
    join.last_generation = fields.Number("lastGeneration", 0);
    return fields.Finish<ToLeader>(std::move(join));
  }
  if (kind == "ready") {
    return fields.Finish<ToLeader>(ReadyReport{fields.Number("generation", 1)});
  }
  if (kind == "failure") {
    FailureReport failure;
    failure.generation = fields.Number("generation", 1);
    failure.why = fields.Text("why");
    return fields.Finish<ToLeader>(std::move(failure));
  }
  if (kind == "wait") {
    WaitReport wait;
    wait.generation = fields.Number("generation", 1);
    wait.operation = fields.Number("operation", 0);
    wait.name = fields.Text("name", kMostNameBytes);
    wait.on = fields.Rank("on", -1);
    wait.microseconds = fields.Number("microseconds", 0);
    return fields.Finish<ToLeader>(std::move(wait));
  }
  if (kind == "leave") return fields.Finish<ToLeader>(LeaveNotice());
  if (kind == "depart") return fields.Finish<ToLeader>(DepartNotice());
  if (kind == "runFailure") {
    return fields.Finish<ToLeader>(RunFailureReport{fields.Text("words")});
  }
  return DataLoss("an unreadable message");
}

StatusOr<ToMember> DecodeToMember(std::string_view text) {
  ASSIGN_OR_RETURN(const Json document, ParseMessage(text));
  Fields fields(document);
  const std::string kind = fields.Text("kind", kMostNameBytes);
  if (kind == "form") {
    FormOrder form;
    form.request = fields.Number("request", 0);
    form.generation = fields.Number("generation", 1);
    form.source = fields.Rank("source", 0);
    form.members = fields.Members("members");
    if (static_cast<size_t>(form.source) >= form.members.size()) {
      return DataLoss("an unreadable message: source: not a member");
    }
    return fields.Finish<ToMember>(std::move(form));
  }
  if (kind == "go") return fields.Finish<ToMember>(GoOrder{fields.Number("generation", 1)});
  if (kind == "withdraw") {
    WithdrawOrder withdraw;
    withdraw.generation = fields.Number("generation", 1);
    withdraw.why = fields.Text("why");
    return fields.Finish<ToMember>(std::move(withdraw));
  }
  if (kind == "refusal") return fields.Finish<ToMember>(RefusalOrder{fields.Text("why")});
  if (kind == "awaited") {
    AwaitedNotice awaited;
    awaited.peers = fields.Text("peers");
    awaited.address = fields.Text("address");
    awaited.text = fields.Text("text");
    return fields.Finish<ToMember>(std::move(awaited));
  }
  if (kind == "stuck") {
    StuckNotice stuck;
    stuck.peer = fields.Text("peer");
    stuck.address = fields.Text("address");
    stuck.text = fields.Text("text");
    return fields.Finish<ToMember>(std::move(stuck));
  }
  if (kind == "farewell") {
    return fields.Finish<ToMember>(FarewellReceipt{fields.Flag("departs")});
  }
  if (kind == "end") {
    EndOrder end;
    end.failed = fields.Flag("failed");
    end.words = fields.Text("words");
    return fields.Finish<ToMember>(std::move(end));
  }
  return DataLoss("an unreadable message");
}

std::string Describe(const Member& member) {
  return StrCat(member.task, " (", member.address, ")");
}

}  // namespace tfjob::collectives
