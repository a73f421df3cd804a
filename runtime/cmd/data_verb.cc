// Implements `tfjob-trainer data inspect` and `tfjob-trainer data verify`, which describe and check
// files of examples.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/base/yaml.h"
#include "runtime/cmd/verb.h"
#include "runtime/config/tokenize.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/data/records/record_files.h"
#include "runtime/train/job/text_data.h"

namespace tfjob::cmd {
namespace {

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const data::FileFormat& format : data::FileFormats()) names.emplace_back(format.name);
  return names;
}

class DataVerb : public Verb {
 public:
  std::string name() const override { return "data"; }
  std::string help() const override { return "Describes or checks files of examples"; }

  void AddFlags(CLI::App& app) override {
    CLI::App* const inspect = app.add_subcommand(
        "inspect", "Prints the fields of each file, the first examples, and what is damaged");
    verify_ = app.add_subcommand(
        "verify", "Reads each file completely; exits with code 1 if one of them is damaged");
    for (CLI::App* const sub : {inspect, verify_}) {
      sub->add_option("FILE", files_,
                      "The files, or folders of images: paths, or quoted patterns as in a shell")
          ->required();
      sub->add_option("--format", format_,
                      "The format of the files. Default: recognised by their content")
          ->check(CLI::IsMember(FormatNames()));
      sub->add_option("--tokenize", tokenize_,
                      "With --format text: the tokenizer, as in a training file: "
                      "'{name: wordpiece, vocabulary: vocab.txt, max_length: 128}'");
      sub->add_option("--list", options_.most_damage,
                      "How many damaged places of each file to list; all are counted")
          ->capture_default_str()
          ->check(CLI::Range(int64_t{0}, int64_t{1} << 24));
      sub->add_option("--cache-dir", options_.cache_dir,
                      "The folder for the content of compressed files. Default: TMPDIR, or /tmp");
    }
    inspect->add_option("--examples", options_.examples, "How many of the first examples to print")
        ->capture_default_str()
        ->check(CLI::Range(int64_t{0}, int64_t{10'000}));
    app.require_subcommand(1);
  }

  Status Run(const StopSource& stop, std::ostream& output) override {
    const bool verify = verify_->parsed();
    if (!tokenize_.empty()) RETURN_IF_ERROR(ReadTokenizer());
    options_.fields = !verify;
    if (verify) options_.examples = 0;
    ASSIGN_OR_RETURN(const std::vector<std::string> files, data::FindFiles(files_));
    Status problem;  // the error of the first unreadable file
    int64_t damaged = 0, unread = 0;
    for (const std::string& file : files) {
      const StatusOr<data::FileSummary> summary = data::Summarise(file, format_, options_, stop);
      if (stop.requested()) return Cancelled("stopped before all files were read");
      if (!summary.ok()) {
        const std::string message = data::Printable(Message(summary.status()));
        output << message << "\n";
        problem.Update(Status(summary.status().code(), message));
        ++unread;
        continue;
      }
      output << (verify ? summary->DescribeDamage() : summary->Describe()) << std::flush;
      damaged += summary->damaged() > 0 ? 1 : 0;
    }
    if (!verify || damaged == 0) return problem;
    return DataLoss("damaged files: ", damaged, " of ", files.size(),
                    unread > 0 ? StrCat("; files that could not be read: ", unread) : "");
  }

 private:
  Status ReadTokenizer() {
    if (format_ != "text")
      return InvalidArgument("--tokenize: belongs to --format text; add it, or remove the flag");
    ASSIGN_OR_RETURN(const std::vector<Json> documents, ParseYaml(tokenize_, "--tokenize"));
    if (documents.size() != 1)
      return InvalidArgument("--tokenize: expected a map of keys, such as {name: byte, ",
                             "max_length: 8}");
    ASSIGN_OR_RETURN(const config::TokenizeConfig tokenize,
                     config::ReadTokenize(JsonField(documents[0], "--tokenize")));
    ASSIGN_OR_RETURN(const text::SequenceOptions sequence,
                     train::ReadTokenizer(tokenize, std::nullopt, "--tokenize"));
    options_.tokenizer = sequence.tokenizer;
    options_.most_tokens = tokenize.max_length;
    return OkStatus();
  }

  CLI::App* verify_ = nullptr;
  std::vector<std::string> files_;
  std::string format_, tokenize_;
  data::SummaryOptions options_;
};

}  // namespace

std::unique_ptr<Verb> MakeDataVerb() {
  return std::make_unique<DataVerb>();
}

}  // namespace tfjob::cmd
