#include "operator/cli/completion.h"

#include <algorithm>
#include <set>

#include "operator/cli/cluster_flags.h"
#include "operator/client/client.h"
#include "operator/objects/metadata.h"

namespace tfjob::cli {
namespace {

using Words = std::vector<std::string>;

// Contains the state that results from all words before the last one.
struct Context {
  const FlagSet* before = nullptr;  // flags before the verb
  const FlagSet* verb = nullptr;
  const Flag* open = nullptr;  // a flag whose value comes next
  ClusterFlags cluster;
  std::set<std::string> arguments;  // already on the command line
};

const Flag* FindFlag(const Context& context, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  for (const FlagSet* flags : {context.verb, context.before}) {
    const Flag* flag = flags == nullptr ? nullptr : flags->Find(name);
    if (flag != nullptr) return flag;
  }
  return nullptr;
}

// Reads "--flag", whose value may follow as the next word, or "--flag=value".
void ReadFlag(const std::string& word, Context& context) {
  const Flag* flag = FindFlag(context, word);
  if (flag == nullptr || !flag->takes_value()) return;
  const size_t equals = word.find('=');
  if (equals == std::string::npos) {
    context.open = flag;
  } else {
    SetClusterFlag(*flag, word.substr(equals + 1), context.cluster);
  }
}

Context ReadContext(CommandParser& parser, const Words& before) {
  Context context;
  context.before = &parser.flags();
  for (const std::string& word : before) {
    if (context.open != nullptr) {
      if (word == "=") continue;  // bash splits --flag=value into three words
      SetClusterFlag(*context.open, word, context.cluster);
      context.open = nullptr;
    } else if (word.starts_with("-")) {
      ReadFlag(word, context);
    } else if (context.verb == nullptr) {
      context.verb = parser.Find(word);
    } else {
      context.arguments.insert(word);
    }
  }
  return context;
}

Words LongNames(const FlagSet& flags) {
  Words words;
  for (const Flag& flag : flags.flags()) {
    for (const std::string& name : flag.long_names()) words.push_back(name);
  }
  return words;
}

// Returns the namespaces that contain jobs, or the names of the jobs in the selected namespace.
Words NamesInCluster(const Context& context, const Connect& connect, bool namespaces) {
  ClusterFlags flags = context.cluster;
  flags.request_timeout = 2s;  // a user is waiting at the keyboard
  const auto cluster = connect(flags);
  if (!cluster.ok()) return {};
  const std::string place = namespaces ? "" : (*cluster)->name_space();
  const auto objects = (*cluster)->client().List(objects::Kind::kTFJob, place, {});
  if (!objects.ok()) return {};
  std::set<std::string> found;
  for (const client::Object& object : *objects) {
    const objects::ObjectMeta& metadata = client::MetadataOf(object);
    found.insert(namespaces ? metadata.name_space : metadata.name);
  }
  for (const std::string& name : context.arguments) found.erase(name);
  return {found.begin(), found.end()};
}

Candidates ValuesOf(const Flag& flag, const Context& context, const Connect& connect) {
  switch (flag.completion()) {
    case CompleteWith::kWords:
      return {flag.words(), false};
    case CompleteWith::kFiles:
      return {{}, true};
    case CompleteWith::kNamespaces:
      return {NamesInCluster(context, connect, true), false};
    case CompleteWith::kJob:
      if (!context.arguments.empty()) return {};
      [[fallthrough]];
    case CompleteWith::kJobs:
      return {NamesInCluster(context, connect, false), false};
    case CompleteWith::kNothing:
      break;
  }
  return {};
}

Candidates AllCandidates(const CommandParser& parser, const Context& context,
                         const std::string& word, const Connect& connect) {
  if (context.open != nullptr) return ValuesOf(*context.open, context, connect);
  if (word.starts_with("-")) {
    return {LongNames(context.verb == nullptr ? *context.before : *context.verb), false};
  }
  if (context.verb == nullptr) return {parser.commands(), false};
  const Flag* argument = context.verb->argument();
  return argument == nullptr ? Candidates() : ValuesOf(*argument, context, connect);
}

}  // namespace

Candidates Complete(CommandParser& parser, const std::vector<std::string>& words,
                    const Connect& connect) {
  std::string word = words.empty() ? "" : words.back();
  Context context = ReadContext(parser, {words.begin(), words.end() - (words.empty() ? 0 : 1)});
  std::string before;  // the prefix "--flag=", which the shell expects in the candidates
  const size_t equals = word.find('=');
  if (word.starts_with("--") && equals != std::string::npos && context.open == nullptr) {
    context.open = FindFlag(context, word);
    before = word.substr(0, equals + 1);
    word = word.substr(equals + 1);
  } else if (word == "=" && context.open != nullptr) {
    word = "";
  }
  Candidates candidates = AllCandidates(parser, context, word, connect);
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
