#include "operator/cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "operator/cli/cluster_flags.h"

namespace tfjob::cli {
namespace {

using Words = std::vector<std::string>;

// Values of flags with a fixed set of them, for the flags of all verbs.
const std::map<std::string, Words>& FlagValues() {
  static const std::map<std::string, Words> values = {
      {"--output", {"json", "name", "wide", "yaml"}},
      {"--print", {"defaults", "objects", "plan", "verdict"}},
      {"--log-level", {"debug", "error", "info", "off", "warning"}},
      {"--for", {"Created", "Failed", "Restarting", "Running", "Succeeded", "Suspended", "delete"}},
      {"--replica", {"chief", "evaluator", "master", "ps", "worker"}},
      {"--replicas", {"chief=", "evaluator=", "master=", "ps=", "worker="}},
  };
  return values;
}

// State derived from the words before the last one.
struct Context {
  const CLI::App* verb = nullptr;
  const CLI::Option* open = nullptr;  // a flag that expects its value next
  ClusterFlags cluster;
  size_t positionals = 0;
  std::set<std::string> names;  // already on the command line
};

const CLI::App* FindVerb(const CLI::App& app, const std::string& name) {
  const auto found =
      app.get_subcommands([&](const CLI::App* verb) { return verb->check_name(name); });
  return found.empty() ? nullptr : found.front();
}

const CLI::Option* FindFlag(const CLI::App& app, const CLI::App* verb, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const CLI::App* place : {verb, &app}) {
    const CLI::Option* flag = place == nullptr ? nullptr : place->get_option_no_throw(name);
    if (flag != nullptr) return flag;
  }
  return nullptr;
}

void NoteCluster(const CLI::Option& flag, const std::string& value, ClusterFlags& cluster) {
  if (flag.check_lname("namespace")) cluster.name_space = value;
  if (flag.check_lname("context")) cluster.context = value;
  if (flag.check_lname("kubeconfig")) cluster.kubeconfig = value;
  if (flag.check_lname("as")) cluster.as = value;
}

Context ReadContext(const CLI::App& app, const Words& before) {
  Context context;
  for (const std::string& word : before) {
    if (context.open != nullptr) {
      if (word == "=") continue;  // bash splits --flag=value into three words
      NoteCluster(*context.open, word, context.cluster);
      context.open = nullptr;
    } else if (word.starts_with("-")) {
      const CLI::Option* flag = FindFlag(app, context.verb, word);
      if (flag == nullptr || flag->get_items_expected_max() == 0) continue;
      const size_t equals = word.find('=');
      if (equals == std::string::npos) {
        context.open = flag;
      } else {
        NoteCluster(*flag, word.substr(equals + 1), context.cluster);
      }
    } else if (context.verb == nullptr) {
      context.verb = FindVerb(app, word);
    } else {
      ++context.positionals;
      context.names.insert(word);
    }
  }
  return context;
}

Words FlagsOf(const CLI::App& app) {
  Words words;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

Words Jobs(const Context& context, const Connect& connect, bool namespaces) {
  ClusterFlags flags = context.cluster;
  flags.request_timeout = 2s;  // a user waits at the keyboard
  const auto cluster = connect(flags);
  if (!cluster.ok()) return {};
  const std::string place = namespaces ? "" : (*cluster)->name_space();
  const auto objects = (*cluster)->client().List(client::Kind::kTFJob, place, {});
  if (!objects.ok()) return {};
  std::set<std::string> found;
  for (const client::Object& object : *objects) {
    const objects::ObjectMeta& metadata = client::MetadataOf(object);
    found.insert(namespaces ? metadata.name_space : metadata.name);
  }
  for (const std::string& name : context.names) found.erase(name);
  return {found.begin(), found.end()};
}

Candidates ValuesOf(const CLI::Option& flag, const Context& context, const Connect& connect) {
  if (flag.check_lname("namespace")) return {Jobs(context, connect, true), false};
  for (const auto& [name, values] : FlagValues()) {
    if (flag.check_name(name)) return {values, false};
  }
  const bool file = flag.check_lname("kubeconfig") || flag.check_lname("observed") ||
                    flag.check_lname("trainer") || flag.check_lname("state-dir") ||
                    flag.check_lname("filename");
  return {{}, file};
}

Candidates All(const CLI::App& app, const Context& context, const std::string& word,
               const Connect& connect) {
  if (context.open != nullptr) return ValuesOf(*context.open, context, connect);
  if (word.starts_with("-")) return {FlagsOf(context.verb == nullptr ? app : *context.verb), false};
  if (context.verb == nullptr) return {Verbs(app), false};
  const std::string& verb = context.verb->get_name();
  if (verb == "completion") return {{"bash", "fish", "zsh"}, false};
  if (!TakesJobNames(verb)) return {{}, verb != "version"};
  const bool one = verb == "logs" || verb == "scale";
  if (one && context.positionals > 0) return {};
  return {Jobs(context, connect, false), false};
}

}  // namespace

std::vector<std::string> Verbs(const CLI::App& app) {
  std::vector<std::string> verbs;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!verb->get_group().empty()) verbs.push_back(verb->get_name());
  }
  return verbs;
}

Candidates Complete(const CLI::App& app, const std::vector<std::string>& words,
                    const Connect& connect) {
  std::string word = words.empty() ? "" : words.back();
  Context context = ReadContext(app, {words.begin(), words.end() - (words.empty() ? 0 : 1)});
  std::string before;  // the prefix "--flag=", which the shell expects in the candidates
  const size_t equals = word.find('=');
  if (word.starts_with("--") && equals != std::string::npos && context.open == nullptr) {
    context.open = FindFlag(app, context.verb, word);
    before = word.substr(0, equals + 1);
    word = word.substr(equals + 1);
  } else if (word == "=" && context.open != nullptr) {
    word = "";
  }
  Candidates candidates = All(app, context, word, connect);
  std::erase_if(candidates.words, [&](const std::string& c) { return !c.starts_with(word); });
  for (std::string& candidate : candidates.words) candidate.insert(0, before);
  std::sort(candidates.words.begin(), candidates.words.end());
  return candidates;
}

std::string Print(const Candidates& candidates) {
  std::string text;
  for (const std::string& word : candidates.words) text += word + "\n";
  return text + (candidates.files ? ":0\n" : ":4\n");
}

}  // namespace tfjob::cli
