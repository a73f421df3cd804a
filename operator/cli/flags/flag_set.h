// Declares and parses the flags and arguments of a command line. In operator/cli, only flag_set.cc
// includes CLI11.
//
//   CommandParser parser("tfjob", "Runs TFJobs.");
//   FlagSet& get = parser.AddCommand("get", "List TFJobs");
//   get.Repeated("JOB", names, "Names of TFJobs");
//   get.Text("-o,--output", output, "Output format").AllowOnly({"table", "json"});
//   ASSIGN_OR_RETURN(const std::string command, parser.Parse({"get", "-o", "json"}, std::cout));
//   RETURN_IF_ERROR(parser.Find(command)->RunChecks());
//
// The `names` of a flag have the form "-o,--output", "--output" or, for a positional argument,
// "JOB". Parse() stores the values. The values of Seconds, TimeSpan, TextAs and RepeatedAs must be
// converted first, so RunChecks() stores them. The value of a flag that is not given stays
// unchanged. All values must outlive the parser. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tfjob::cli {

// The completions that a shell offers for a value.
enum class CompleteWith {
  kNothing,
  kWords,       // Flag::words()
  kFiles,       // file names
  kJob,         // the name of one TFJob
  kJobs,        // names of TFJobs
  kNamespaces,  // namespaces that contain TFJobs
};

// Represents one flag or positional argument. Every setter returns the flag itself.
class Flag {
 public:
  explicit Flag(CLI::Option& option) : option_(option) {}

  Flag& Require();
  // Shows the initial value as the default in the help.
  Flag& ShowDefault();
  // Rejects command lines that contain both this flag and `other`.
  Flag& Exclude(const Flag& other);
  // Lists the flag under the heading `section` in the help.
  Flag& InSection(const std::string& section);
  Flag& AllowOnly(std::vector<std::string> words);
  Flag& AtLeast(int least);
  // Requires exactly `count` values of a repeated flag or argument.
  Flag& Exactly(int count);
  Flag& Complete(CompleteWith completion);
  Flag& CompleteWords(std::vector<std::string> words);

  // Returns the long name, such as "--output", or "JOB" for an argument.
  std::string name() const;
  // Returns {"--output"} for "-o,--output"; empty for an argument.
  std::vector<std::string> long_names() const;
  bool positional() const;
  bool takes_value() const;
  // Returns whether `word` is one of the flag's names, such as "-o" or "--output".
  bool Matches(std::string_view word) const;
  const std::string& section() const;
  bool given() const;
  // Returns the last value that was given; "" if there is none.
  std::string last_text() const;
  CompleteWith completion() const { return completion_; }
  const std::vector<std::string>& words() const { return words_; }

 private:
  CLI::Option& option_;
  CompleteWith completion_ = CompleteWith::kNothing;
  std::vector<std::string> words_;
};

// Contains the flags and arguments of one command, or the flags before the command.
class FlagSet {
 public:
  // `before` points to the flags before the command. It is null if this object itself contains
  // those flags.
  FlagSet(CLI::App& app, const FlagSet* before);

  Flag& Text(const std::string& names, std::string& value, const std::string& help);
  // Adds a flag whose text RunChecks() passes to `read`. If the flag is not given, the text is "".
  Flag& TextAs(const std::string& names, std::function<Status(const std::string&)> read,
               const std::string& help);
  // Switch adds a flag without a value, and Integer a flag whose value is a whole number.
  Flag& Switch(const std::string& names, bool& value, const std::string& help);
  Flag& Integer(const std::string& names, std::optional<int64_t>& value, const std::string& help);
  // Adds a flag whose value is a number of seconds, 0 or more, such as "0.5".
  Flag& Seconds(const std::string& names, Duration& value, const std::string& help);
  // Adds a flag whose value is a duration with units, such as "1m30s". An empty text leaves
  // `value` unchanged.
  Flag& TimeSpan(const std::string& names, std::optional<Duration>& value, const std::string& help);
  // Adds a flag that may be repeated, or an argument that consumes all remaining words.
  Flag& Repeated(const std::string& names, std::vector<std::string>& values,
                 const std::string& help);
  // Like Repeated, but RunChecks() passes the texts to `read`, even if there are none.
  Flag& RepeatedAs(const std::string& names,
                   std::function<Status(const std::vector<std::string>&)> read,
                   const std::string& help);
  // Adds a check that RunChecks() calls.
  void Check(std::function<Status()> check);

  // Runs the checks and conversions in the order in which they were added, and stops at the first
  // error. Call this after parsing.
  Status RunChecks() const;
  // Returns the last value given for the flag `name` after the command or, if there is none, before
  // the command; "" if the flag was not given.
  std::string LastText(std::string_view name) const;
  // Returns the flag named `name`; null if there is none.
  const Flag* Find(std::string_view name) const;
  // Returns the first positional argument; null if there is none.
  const Flag* argument() const;
  const std::deque<Flag>& flags() const { return flags_; }

 private:
  friend class CommandParser;
  Flag& Add(CLI::Option* option);

  CLI::App& app_;
  const FlagSet* const before_;
  std::deque<Flag> flags_;
  // The values as CLI11 stores them. `checks_` converts them after parsing.
  std::deque<double> seconds_;
  std::deque<std::string> texts_;
  std::deque<std::vector<std::string>> lists_;
  std::vector<std::function<Status()>> checks_;
};

// Parses "PROGRAM [FLAGS] COMMAND [FLAGS AND ARGUMENTS]".
class CommandParser {
 public:
  CommandParser(const std::string& program, const std::string& description);
  ~CommandParser();

  // Returns the flags before the command.
  FlagSet& flags() { return *flags_; }
  // Adds a command. The help lists commands in the order in which they were added.
  FlagSet& AddCommand(const std::string& name, const std::string& help);
  // Adds a --version flag, which prints `text`.
  void AddVersionFlag(const std::string& text);

  // Parses the words after the program's name and returns the command. If help or the version was
  // requested, prints it to `out` and returns "". Returns InvalidArgument if the words are wrong.
  // Call this only once.
  StatusOr<std::string> Parse(std::vector<std::string> words, std::ostream& out);

  // Returns the flags of a command; null if there is no such command.
  const FlagSet* Find(const std::string& command) const;
  std::vector<std::string> commands() const;

 private:
  std::string ExplainMissingCommand() const;

  std::unique_ptr<CLI::App> app_;
  std::unique_ptr<FlagSet> flags_;
  std::deque<FlagSet> commands_;
};

}  // namespace tfjob::cli
