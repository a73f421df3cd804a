#include "runtime/data/text/vocabulary.h"

#include <farmhash.h>

#include "runtime/base/fnv1a.h"
#include "runtime/data/text/text_lines.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::text {

Status Vocabulary::Add(std::string_view term) {
  if (term.empty()) return InvalidArgument("expected a term, got an empty one");
  const auto [place, added] = ids_.emplace(std::string(term), size());
  if (!added) {
    return InvalidArgument("expected each term once, got ", Quote(term), " again; it is also term ",
                           place->second - oov_ + 1);
  }
  fingerprint_ = Fnv1a().AddWord(fingerprint_).Add(term).hash();
  return OkStatus();
}

StatusOr<Vocabulary> Vocabulary::FromTerms(const std::vector<std::string>& terms, int64_t oov,
                                           std::string name) {
  Vocabulary vocabulary(oov, std::move(name));
  vocabulary.fingerprint_ = static_cast<uint64_t>(oov);
  for (const std::string& term : terms) RETURN_IF_ERROR(vocabulary.Add(term));
  if (terms.empty()) return InvalidArgument("expected at least one term, got none");
  return vocabulary;
}

StatusOr<Vocabulary> Vocabulary::Read(const std::string& path, int64_t oov) {
  ASSIGN_OR_RETURN(const std::string content, ReadSmallFile(path));
  Vocabulary vocabulary(oov, path);
  vocabulary.fingerprint_ = static_cast<uint64_t>(oov);
  RETURN_IF_ERROR(VisitLines(content, path,
                             [&](std::string_view line, int64_t) { return vocabulary.Add(line); }));
  if (vocabulary.ids_.empty())
    return InvalidArgument(path, ": expected one term per line, got an empty file");
  return vocabulary;
}

StatusOr<int64_t> Vocabulary::Find(std::string_view term) const {
  const auto found = ids_.find(absl::string_view(term.data(), term.size()));
  if (found != ids_.end()) return found->second;
  if (oov_ == 1) return 0;
  if (oov_ > 1) {
    const uint64_t hash = util::Fingerprint64(term.data(), term.size());
    return static_cast<int64_t>(hash % static_cast<uint64_t>(oov_));
  }
  return InvalidArgument("expected a term of the vocabulary ", name_, ", got ", Quote(term),
                         "; add the term, or set num_oov_indices: 1");
}

}  // namespace tfjob::text
