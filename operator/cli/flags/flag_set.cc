#include "operator/cli/flags/flag_set.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "operator/view/duration.h"
#include "operator/view/flag_checks.h"
#include "runtime/base/did_you_mean.h"

namespace tfjob::cli {

Flag& Flag::Require() {
  option_.required();
  return *this;
}

Flag& Flag::ShowDefault() {
  option_.capture_default_str();
  return *this;
}

Flag& Flag::Exclude(const Flag& other) {
  option_.excludes(&other.option_);
  return *this;
}

Flag& Flag::InSection(const std::string& section) {
  option_.group(section);
  return *this;
}

Flag& Flag::AllowOnly(std::vector<std::string> words) {
  option_.check(CLI::IsMember(std::move(words)));
  return *this;
}

Flag& Flag::AtLeast(int least) {
  option_.check(view::AtLeast(least));
  return *this;
}

Flag& Flag::Exactly(int count) {
  option_.expected(count);
  return *this;
}

Flag& Flag::Complete(CompleteWith completion) {
  completion_ = completion;
  return *this;
}

Flag& Flag::CompleteWords(std::vector<std::string> words) {
  words_ = std::move(words);
  return Complete(CompleteWith::kWords);
}

std::string Flag::name() const {
  return option_.get_name();
}

std::vector<std::string> Flag::long_names() const {
  std::vector<std::string> names;
  for (const std::string& name : option_.get_lnames()) names.push_back("--" + name);
  return names;
}

bool Flag::positional() const {
  return option_.get_positional();
}

bool Flag::takes_value() const {
  return option_.get_items_expected_max() > 0;
}

bool Flag::Matches(std::string_view word) const {
  return word.starts_with("-") && option_.check_name(std::string(word));
}

const std::string& Flag::section() const {
  return option_.get_group();
}

bool Flag::given() const {
  return option_.count() > 0;
}

std::string Flag::last_text() const {
  return given() ? option_.results().back() : "";
}

FlagSet::FlagSet(CLI::App& app, const FlagSet* before) : app_(app), before_(before) {
  Add(app_.get_help_ptr());
}

Flag& FlagSet::Add(CLI::Option* option) {
  return flags_.emplace_back(*option);
}

Flag& FlagSet::Text(const std::string& names, std::string& value, const std::string& help) {
  return Add(app_.add_option(names, value, help));
}

Flag& FlagSet::TextAs(const std::string& names, std::function<Status(const std::string&)> read,
                      const std::string& help) {
  std::string& text = texts_.emplace_back();
  Check([&text, read = std::move(read)] { return read(text); });
  return Text(names, text, help);
}

Flag& FlagSet::Switch(const std::string& names, bool& value, const std::string& help) {
  return Add(app_.add_flag(names, value, help));
}

Flag& FlagSet::Integer(const std::string& names, std::optional<int64_t>& value,
                       const std::string& help) {
  return Add(app_.add_option(names, value, help));
}

Flag& FlagSet::Seconds(const std::string& names, Duration& value, const std::string& help) {
  using Fraction = std::chrono::duration<double>;
  double& seconds = seconds_.emplace_back(Fraction(value).count());
  Check([&seconds, &value] {
    value = std::chrono::duration_cast<Duration>(Fraction(seconds));
    return OkStatus();
  });
  return Add(app_.add_option(names, seconds, help)).AtLeast(0);
}

Flag& FlagSet::TimeSpan(const std::string& names, std::optional<Duration>& value,
                        const std::string& help) {
  const std::string name = names.substr(names.rfind(',') + 1);  // npos + 1 is 0
  const auto read = [name, &value](const std::string& text) {
    if (text.empty()) return OkStatus();
    const auto parsed = view::ParseDuration(text);
    if (parsed.ok()) value = *parsed;
    return Annotate(parsed.status(), name);
  };
  return TextAs(names, read, help);
}

Flag& FlagSet::Repeated(const std::string& names, std::vector<std::string>& values,
                        const std::string& help) {
  CLI::Option* option = app_.add_option(names, values, help);
  if (!option->get_positional()) option->allow_extra_args(false);
  return Add(option);
}

Flag& FlagSet::RepeatedAs(const std::string& names,
                          std::function<Status(const std::vector<std::string>&)> read,
                          const std::string& help) {
  std::vector<std::string>& list = lists_.emplace_back();
  Check([&list, read = std::move(read)] { return read(list); });
  return Repeated(names, list, help);
}

void FlagSet::Check(std::function<Status()> check) {
  checks_.push_back(std::move(check));
}

Status FlagSet::RunChecks() const {
  for (const auto& check : checks_) RETURN_IF_ERROR(check());
  return OkStatus();
}

std::string FlagSet::LastText(std::string_view name) const {
  const Flag* flag = Find(name);
  if (flag != nullptr && flag->given()) return flag->last_text();
  return before_ == nullptr ? "" : before_->LastText(name);
}

const Flag* FlagSet::Find(std::string_view name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(),
                                  [name](const Flag& flag) { return flag.Matches(name); });
  return found == flags_.end() ? nullptr : &*found;
}

const Flag* FlagSet::argument() const {
  const auto found = std::find_if(flags_.begin(), flags_.end(),
                                  [](const Flag& flag) { return flag.positional(); });
  return found == flags_.end() ? nullptr : &*found;
}

CommandParser::CommandParser(const std::string& program, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, program)),
      flags_(std::make_unique<FlagSet>(*app_, nullptr)) {
  app_->require_subcommand(1);
}

CommandParser::~CommandParser() = default;

FlagSet& CommandParser::AddCommand(const std::string& name, const std::string& help) {
  return commands_.emplace_back(*app_->add_subcommand(name, help), flags_.get());
}

void CommandParser::AddVersionFlag(const std::string& text) {
  flags_->Add(app_->set_version_flag("--version", text));
}

StatusOr<std::string> CommandParser::Parse(std::vector<std::string> words, std::ostream& out) {
  std::reverse(words.begin(), words.end());  // CLI11 expects them in reverse order
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& request) {  // --help, --version
    app_->exit(request, out, out);
    return std::string();
  } catch (const CLI::ParseError& error) {
    return InvalidArgument(app_->get_subcommands().empty() ? ExplainMissingCommand()
                                                           : error.what());
  }
  return app_->get_subcommands().front()->get_name();
}

// Returns the message for a missing or unknown command. CLI11 would only report that a command
// is missing.
std::string CommandParser::ExplainMissingCommand() const {
  const std::vector<std::string> words = app_->remaining();
  if (words.empty()) return "a command is missing: " + absl::StrJoin(commands(), ", ");
  const bool flag = words.front().starts_with("-");
  return StrCat("unknown ", flag ? "flag " : "command ", words.front(),
                flag ? "" : DidYouMean(words.front(), commands()));
}

const FlagSet* CommandParser::Find(const std::string& command) const {
  const auto found = std::find_if(commands_.begin(), commands_.end(), [&](const FlagSet& flags) {
    return flags.app_.get_name() == command;
  });
  return found == commands_.end() ? nullptr : &*found;
}

std::vector<std::string> CommandParser::commands() const {
  std::vector<std::string> names;
  for (const FlagSet& flags : commands_) names.push_back(flags.app_.get_name());
  return names;
}

}  // namespace tfjob::cli
