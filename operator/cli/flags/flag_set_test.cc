// Tests what each kind of flag accepts, and how it appears in help, errors and completion.
#include "operator/cli/flags/flag_set.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tfjob::cli {
namespace {

using Words = std::vector<std::string>;

// Defines a command line with one flag of each kind.
struct Sample {
  Sample() {
    parser.flags().Text("--level", level, "Level").AllowOnly({"low", "high"}).ShowDefault();
    FlagSet& run = parser.AddCommand("run", "Run files");
    run.Text("FILE", file, "File").Require();
    Flag& other = run.Text("-o,--other", text, "Text").CompleteWords({"a", "b"});
    run.Switch("-w,--watch", on, "Watch").Exclude(other);
    run.Integer("--tail", tail, "Lines").AtLeast(0);
    run.Seconds("--delay", delay, "Delay").ShowDefault();
    run.TimeSpan("--since", since, "Since").InSection("Times");
    run.TextAs("--even", [this](const std::string& word) { return ReadEven(word); }, "Even");
    run.RepeatedAs("--join", [this](const Words& words) { return Join(words); }, "Join");
    run.Repeated("--image", images, "Image");
    run.Text("--level", level, "Level");
    run.Check(
        [this] { return text == "bad" ? InvalidArgument("--other: it is bad") : OkStatus(); });
    parser.AddCommand("list", "List names").Repeated("NAME", names, "Names");
    parser.AddCommand("pair", "Join two names").Repeated("NAME", names, "Names").Exactly(2);
    parser.AddVersionFlag("tool 1");
  }
  Status ReadEven(const std::string& word) {
    if (word.size() % 2 != 0) return InvalidArgument("--even: got ", word);
    even = word;
    return OkStatus();
  }
  Status Join(const Words& words) {
    for (const std::string& word : words) joined += word;
    return OkStatus();
  }
  // Parses the words and returns the values, or the error.
  std::string Read(const Words& words) {
    const auto command = parser.Parse(words, out);
    if (!command.ok()) return std::string(Message(command.status()));
    if (command->empty()) return out.str();
    const FlagSet& flags = *parser.Find(*command);
    const Status status = flags.RunChecks();
    if (!status.ok()) return std::string(Message(status));
    std::string line = StrCat(*command, ":");
    const auto add = [&line](const char* name, const std::string& value) {
      if (!value.empty()) line += StrCat(" ", name, "=", value);
    };
    add("file", file);
    add("text", text);
    add("on", on ? "true" : "");
    add("tail", tail ? StrCat(*tail) : "");
    add("delay", delay == 1s ? "" : FormatDuration(delay));
    add("since", since ? FormatDuration(*since) : "");
    for (const std::string& image : images) add("image", image);
    for (const std::string& name : names) add("name", name);
    add("even", even);
    add("joined", joined);
    add("level", flags.LastText("--level"));
    return line;
  }

  std::string level = "low", file, text, even, joined;
  bool on = false;
  std::optional<int64_t> tail;
  Duration delay = 1s;
  std::optional<Duration> since;
  Words images, names;
  std::ostringstream out;
  CommandParser parser{"tool", "Does things."};
};

struct Line {
  Words words;
  const char* read;
};

TEST(FlagSetTest, ReadsValues) {
  const std::vector<Line> lines = {
      {{"run", "a"}, "run: file=a"},
      {{"run", "a", "-o", "x"}, "run: file=a text=x"},
      {{"run", "--other=x", "a"}, "run: file=a text=x"},
      {{"run", "a", "-w"}, "run: file=a on=true"},
      {{"run", "a", "--tail", "5"}, "run: file=a tail=5"},
      {{"run", "a", "--delay=0.5"}, "run: file=a delay=500ms"},
      {{"run", "a", "--since=1m30s"}, "run: file=a since=1m30s"},
      {{"run", "a", "--since", ""}, "run: file=a"},
      {{"run", "--image", "x", "a", "--image=y"}, "run: file=a image=x image=y"},
      {{"--level=high", "run", "a"}, "run: file=a level=high"},
      {{"--level=high", "run", "a", "--level=x"}, "run: file=a level=x"},
      {{"run", "a", "--even=xy", "--join", "a", "--join=b"}, "run: file=a even=xy joined=ab"},
      {{"list"}, "list:"},
      {{"list", "a", "b"}, "list: name=a name=b"},
      {{"pair", "a", "b"}, "pair: name=a name=b"},
      {{"--version"}, "tool 1\n"},
  };
  for (const Line& line : lines) EXPECT_EQ(Sample().Read(line.words), line.read);
}

TEST(FlagSetTest, RefusesWrongWords) {
  const std::vector<Line> lines = {
      {{}, "a command is missing: run, list, pair"},
      {{"rnu"}, "unknown command rnu; did you mean \"run\"?"},
      {{"--nonsense"}, "unknown flag --nonsense"},
      {{"run"}, "FILE is required"},
      {{"pair", "a", "b", "c"}, "NAME: At Most 2 required but received 3"},
      {{"run", "a", "b"}, "The following argument was not expected: b"},
      {{"run", "a", "-w", "-o", "x"}, "--other excludes --watch"},
      {{"run", "a", "--tail=-1"}, "--tail: expected a number of 0 or more, got -1"},
      {{"run", "a", "--delay=-1"}, "--delay: expected a number of 0 or more, got -1"},
      {{"run", "a", "--since=soon"},
       "--since: expected a duration such as 30s, 5m or 1h30m, got \"soon\""},
      {{"run", "a", "-o", "bad"}, "--other: it is bad"},
      {{"run", "a", "-o", "bad", "--since=soon"},  // the check declared first fails first
       "--since: expected a duration such as 30s, 5m or 1h30m, got \"soon\""},
      {{"run", "a", "--even=x", "-o", "bad"}, "--even: got x"},
      {{"--level=x", "list"}, "--level: x not in {low,high}"},
  };
  for (const Line& line : lines) EXPECT_EQ(Sample().Read(line.words), line.read);
}

TEST(FlagSetTest, HelpShowsDefaultsWordsAndSections) {
  const std::string help = Sample().Read({"run", "--help"});
  for (const char* part : {"Usage: tool run [OPTIONS] FILE\n", "FILE TEXT REQUIRED ",
                           "-o,--other TEXT Excludes: --watch", "--delay FLOAT=1 ",
                           "\nTimes:\n  --since TEXT ", "--image TEXT ... "}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << " is not in\n" << help;
  }
  const std::string program = Sample().Read({"--help"});
  EXPECT_NE(program.find("--level TEXT:{low,high}=low "), std::string::npos) << program;
}

TEST(FlagSetTest, DescribesItself) {
  const Sample sample;
  EXPECT_EQ(sample.parser.commands(), (Words{"run", "list", "pair"}));
  EXPECT_EQ(sample.parser.Find("rnu"), nullptr);
  const FlagSet& run = *sample.parser.Find("run");
  EXPECT_EQ(run.argument()->name(), "FILE");
  EXPECT_EQ(run.Find("FILE"), nullptr);
  EXPECT_EQ(run.Find("--ot"), nullptr);
  const Flag* other = run.Find("-o");
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other, run.Find("--other"));
  EXPECT_EQ(other->name(), "--other");
  EXPECT_EQ(other->long_names(), Words{"--other"});
  EXPECT_EQ(other->completion(), CompleteWith::kWords);
  EXPECT_EQ(other->words(), (Words{"a", "b"}));
  EXPECT_TRUE(other->takes_value());
  EXPECT_FALSE(other->given());
  EXPECT_FALSE(run.Find("--watch")->takes_value());
  EXPECT_FALSE(run.Find("-h")->takes_value());
  EXPECT_EQ(run.Find("--since")->section(), "Times");
}

}  // namespace
}  // namespace tfjob::cli
