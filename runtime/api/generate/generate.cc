#include "runtime/api/generate/generate.h"

#include <cctype>
#include <map>
#include <sstream>
#include <utility>

#include "runtime/base/status.h"

namespace tfjob::api {
namespace {

constexpr size_t kColumns = 100;

// Returns the number of characters in a UTF-8 string.
size_t Width(const std::string& text) {
  size_t width = 0;
  for (const char c : text) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return width;
}

}  // namespace

std::string Comment(const std::string& text, const std::string& indent) {
  std::istringstream words(text);
  std::string lines, line = indent + "//", word;
  while (words >> word) {
    if (Width(line) + 1 + Width(word) > kColumns) {
      lines += line + "\n";
      line = indent + "//";
    }
    line += " " + word;
  }
  return lines + line + "\n";
}

std::string Members(const std::vector<GeneratedField>& fields) {
  std::string text;
  for (const GeneratedField& field : fields) {
    if (!field.doc.empty()) text += Comment(field.doc, "  ");
    text += StrCat("  ", field.type, " ", field.name, " = ", field.initial, ";\n");
  }
  return text;
}

std::string ClassNameOf(const std::string& name) {
  static const std::map<std::string, std::string> kOwnSpelling = {
      {"sgd", "SGD"},
      {"rmsprop", "RMSprop"},
      {"adamw", "AdamW"},
      {"ctc", "CTC"},
      {"kl_divergence", "KLDivergence"}};
  const auto own = kOwnSpelling.find(name);
  if (own != kOwnSpelling.end()) return own->second;
  std::string words;
  bool start = true;
  for (const char c : name) {
    if (c != '_')
      words += static_cast<char>(start ? std::toupper(static_cast<unsigned char>(c)) : c);
    start = c == '_';
  }
  return words;
}

std::vector<GeneratedFile> GeneratedFiles() {
  std::vector<GeneratedFile> files = LayerFiles();
  for (GeneratedFile& file : CompileFiles()) files.push_back(std::move(file));
  return files;
}

}  // namespace tfjob::api
