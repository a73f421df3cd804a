// Groups warnings about fields of pods, so that a warning that applies to several replica types and
// containers is printed only once.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tfjob::local {

// Returns the path at the start of a warning: the text up to the first space.
std::string PathOf(std::string_view warning);

class FieldWarnings {
 public:
  // Adds a warning, which must start with the path of a field. `where` identifies the object.
  // Warnings about the same object are grouped if they differ only in the part of the path before
  // the field's name.
  void Add(const std::string& where, const std::string& warning);
  // Returns one line per group, in the order in which the groups were started: `where: warning (and
  // in 2 other places)`.
  std::vector<std::string> Lines() const;

 private:
  struct Group {
    std::string first;
    std::set<std::string> paths;
  };
  std::map<std::tuple<std::string, std::string, std::string>, size_t> index_;
  std::vector<Group> groups_;
};

}  // namespace tfjob::local
