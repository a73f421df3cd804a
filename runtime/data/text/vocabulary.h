// Assigns ids to the terms of a categorical feature, as keras.layers.StringLookup does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "runtime/base/status.h"

namespace tfjob::text {

// Maps terms to ids. Immutable. Any number of threads may use a vocabulary.
class Vocabulary {
 public:
  // Assigns the ids from `oov` on to the terms, in this order. The ids below `oov` represent all
  // other terms; if there are several such ids, a hash of the term (FarmHash's Fingerprint64)
  // selects one. `name` identifies the vocabulary in messages. Returns InvalidArgument if there are
  // no terms, if a term is empty, or if a term occurs twice.
  static StatusOr<Vocabulary> FromTerms(const std::vector<std::string>& terms, int64_t oov,
                                        std::string name);
  // Reads a file with one term per line. Returns InvalidArgument, with the file and the line, if
  // there are no terms, if a line is empty or not UTF-8, or if a term occurs twice.
  static StatusOr<Vocabulary> Read(const std::string& path, int64_t oov);

  // Returns the id of a term. Returns InvalidArgument if the vocabulary lacks the term and has no
  // ids for unknown terms.
  StatusOr<int64_t> Find(std::string_view term) const;
  int64_t size() const { return oov_ + static_cast<int64_t>(ids_.size()); }  // number of ids
  // Returns a hash of everything that the ids depend on.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  Vocabulary(int64_t oov, std::string name) : oov_(oov), name_(std::move(name)) {}
  Status Add(std::string_view term);

  int64_t oov_;
  std::string name_;
  uint64_t fingerprint_ = 0;
  absl::flat_hash_map<std::string, int64_t> ids_;
};

}  // namespace tfjob::text
