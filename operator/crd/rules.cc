#include "operator/crd/rules.h"

#include <nlohmann/json.hpp>

namespace tfjob::crd {
namespace {

constexpr char kReplicaSpecs[] = "spec.tfReplicaSpecs";
constexpr char kNameMessage[] =
    "metadata.name: expected at most 63 lower-case letters, digits and \"-\", starting with a "
    "letter and not ending with \"-\" (DNS-1035)";

// Returns an expression for the number of replicas of the type with key `t` in `specs`.
std::string ReplicasOf(const std::string& specs) {
  return StrCat("(has(", specs, "[t].replicas) ? ", specs, "[t].replicas : 1)");
}

// Returns an expression for the maximum length of the job's name that the type with key `t` allows:
// NAME-TYPE-INDEX may have at most 63 characters.
std::string RoomForName(const std::string& specs) {
  return StrCat("61 - size(t) - size(string(", ReplicasOf(specs), " - 1))");
}

// Returns an expression that converts `number` to a string. `number` is an expression with a value
// from kLeastRoom to kMostRoom. string(n) cannot be used, because the server would assume that the
// length of its result, and therefore the cost of the message, is unlimited.
std::string Digits(const std::string& number) {
  constexpr int kLeastRoom = 47;  // left by -evaluator-99999
  constexpr int kMostRoom = 58;   // left by -ps-0
  std::string words;
  for (int n = kLeastRoom; n <= kMostRoom; ++n) {
    words += StrCat(words.empty() ? "" : ", ", "'", n, "'");
  }
  return StrCat("[", words, "][", number, " - ", kLeastRoom, "]");
}

std::vector<Rule> RootRules() {
  const std::string specs = "self.spec.tfReplicaSpecs";
  const std::string old_specs = "oldSelf.value().spec.tfReplicaSpecs";
  const std::string too_long = "size(self.metadata.name) > " + RoomForName(specs);
  const std::string exists = ReplicasOf(specs) + " > 0";
  const std::string unchanged =
      StrCat("oldSelf.hasValue() && has(oldSelf.value().spec) && has(", old_specs, ") && t in ",
             old_specs, " && ", ReplicasOf(old_specs), " == ", ReplicasOf(specs));
  return {
      {.place = "",
       .expression = "has(self.spec) || (oldSelf.hasValue() && !has(oldSelf.value().spec))",
       .message = "expected an object, but it is missing",
       .field = ".spec",
       .reason = "FieldValueRequired",
       .optional_old_self = true},
      {.place = "",
       .expression = "oldSelf.hasValue() || "
                     "self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",
       .message = kNameMessage,
       .message_expression = StrCat("'", kNameMessage, ", got \"' + self.metadata.name + '\"'"),
       .optional_old_self = true},
      {.place = "",
       .expression = StrCat("!has(self.spec) || !has(", specs, ") || ", specs, ".all(t, !(", exists,
                            " && ", too_long, ") || (", unchanged, "))"),
       .message = "metadata.name: the services of this job (NAME-TYPE-INDEX) would have names of "
                  "more than 63 characters; shorten the name",
       .message_expression = StrCat(
           "'metadata.name: the services of this job (NAME-TYPE-INDEX) would have names of "
           "more than 63 characters; shorten the name to ' + ",
           Digits(specs + ".filter(t, " + exists + ").map(t, " + RoomForName(specs) + ").min()"),
           " + ' characters or fewer'"),
       .optional_old_self = true},
  };
}

std::vector<Rule> ReplicaTypeRules() {
  const std::string known = "t.lowerAscii() in ['chief', 'evaluator', 'master', 'ps', 'worker']";
  const std::string alone = "self.exists_one(u, u.lowerAscii() == t.lowerAscii())";
  return {
      {.place = kReplicaSpecs,
       .expression = "size(self) > 0",
       .message = "at least one replica type is required (Chief, Evaluator, Master, PS, Worker)",
       .reason = "FieldValueRequired"},
      {.place = kReplicaSpecs,
       .expression = StrCat("self.all(t, ", known, ")"),
       .message = "unknown replica type (the types are Chief, Evaluator, Master, PS, Worker)",
       .message_expression =
           StrCat("'unknown replica type \"' + self.filter(t, !(", known,
                  "))[0] + '\" (the types are Chief, Evaluator, Master, PS, Worker)'")},
      {.place = kReplicaSpecs,
       .expression = StrCat("self.all(t, ", alone, ")"),
       .message = "keys differ only in case; keep one",
       .message_expression = StrCat("'the key \"' + self.filter(t, !", alone,
                                    ")[0] + '\" differs from another only in case; keep one'")},
      {.place = kReplicaSpecs,
       .expression = "!(self.exists(t, t.lowerAscii() == 'chief') && "
                     "self.exists(t, t.lowerAscii() == 'master'))",
       .message = "Chief and Master exclude each other; keep one",
       .reason = "FieldValueForbidden"},
      {.place = kReplicaSpecs,
       .expression = StrCat("self.map(t, ", ReplicasOf("self"), ").sum() <= 100000"),
       .message = "expected at most 100000 replicas in total"},
  };
}

std::vector<Rule> ContainerRules() {
  const std::string has_containers =
      "has(self.template) && has(self.template.spec) && has(self.template.spec.containers) && "
      "size(self.template.spec.containers) > 0";
  return {
      {.place = "spec.tfReplicaSpecs[]",
       .expression = has_containers,
       .message = "at least one container is required, and one of them must be named "
                  "\"tensorflow\"",
       .field = ".template.spec.containers",
       .reason = "FieldValueRequired"},
      {.place = "spec.tfReplicaSpecs[]",
       .expression = StrCat("!(", has_containers,
                            ") || self.template.spec.containers.exists(c, has(c.name) && c.name "
                            "== 'tensorflow')"),
       .message = "one of the containers must be named \"tensorflow\"",
       .field = ".template.spec.containers",
       .reason = "FieldValueRequired"},
      {.place = kContainerPlace,
       .expression = "has(self.image) && self.image != ''",
       .message = "an image is required",
       .field = ".image",
       .reason = "FieldValueRequired"},
  };
}

std::vector<Rule> ImmutableRules() {
  const auto manager = [](const std::string& object) {
    return StrCat("(has(", object, ".runPolicy) && has(", object, ".runPolicy.managedBy) ? ",
                  object, ".runPolicy.managedBy : '')");
  };
  return {
      {.place = "spec",
       .expression = manager("self") + " == " + manager("oldSelf"),
       .message = "spec.runPolicy.managedBy is immutable",
       .field = ".runPolicy.managedBy"},
      {.place = "spec.runPolicy.schedulingPolicy.queue",
       .expression = "self == oldSelf",
       .message = "spec.runPolicy.schedulingPolicy.queue is immutable"},
  };
}

Json ToJson(const Rule& rule) {
  Json json = {{"rule", rule.expression}, {"message", rule.message}};
  if (!rule.message_expression.empty()) json["messageExpression"] = rule.message_expression;
  if (!rule.field.empty()) json["fieldPath"] = rule.field;
  if (rule.reason != "FieldValueInvalid") json["reason"] = rule.reason;
  if (rule.optional_old_self) json["optionalOldSelf"] = true;
  return json;
}

}  // namespace

const std::vector<Rule>& Rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (auto group : {RootRules(), ReplicaTypeRules(), ContainerRules(), ImmutableRules()}) {
      all.insert(all.end(), group.begin(), group.end());
    }
    return all;
  }();
  return rules;
}

Json ValidationsAt(const std::string& place) {
  Json list = Json::array();
  for (const Rule& rule : Rules()) {
    if (rule.place == place) list.push_back(ToJson(rule));
  }
  return list;
}

}  // namespace tfjob::crd
