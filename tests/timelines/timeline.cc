#include "tests/timelines/timeline.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "runtime/base/yaml.h"

namespace tfjob::timelines {
namespace {

StatusOr<std::vector<std::string>> Words(const std::string& line) {
  std::vector<std::string> words;
  bool quoted = false;
  bool in_word = false;
  for (const char c : line) {
    if (!quoted && c == '#') break;
    if (c == '"') {
      if (!quoted && !in_word) words.emplace_back();
      quoted = !quoted;
      in_word = true;
    } else if (!quoted && c == ' ') {
      in_word = false;
    } else {
      if (!in_word) words.emplace_back();
      in_word = true;
      words.back() += c;
    }
  }
  if (quoted) return InvalidArgument("a quotation mark is missing: ", line);
  return words;
}

StatusOr<std::shared_ptr<const Json>> Block(const std::string& text) {
  ASSIGN_OR_RETURN(std::vector<Json> documents, ParseYaml(text, "block"));
  if (documents.empty()) return std::make_shared<const Json>(Json::object());
  return std::make_shared<const Json>(std::move(documents.front()));
}

}  // namespace

StatusOr<std::vector<Step>> ParseTimeline(std::string_view text) {
  std::vector<Step> steps;
  std::vector<std::string> blocks;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line[0] == ' ' && !steps.empty()) {
      blocks.back() += line + "\n";
      continue;
    }
    ASSIGN_OR_RETURN(std::vector<std::string> words, Words(line));
    if (words.empty()) continue;
    steps.push_back({number, std::move(words), nullptr});
    blocks.emplace_back();
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    StatusOr<std::shared_ptr<const Json>> block = Block(blocks[i]);
    if (!block.ok()) return Annotate(block.status(), StrCat("line ", steps[i].line));
    steps[i].block = *std::move(block);
  }
  return steps;
}

}  // namespace tfjob::timelines
