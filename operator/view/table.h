// Formats text in columns, aligned as kubectl aligns them.
#pragma once

#include <string>
#include <vector>

namespace tfjob::view {

// Collects rows and returns them as lines. The width of a column never shrinks from one Take() to
// the next, so later rows align with earlier ones unless a longer cell widens the column.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::string indent = "")
      : header_(std::move(header)), indent_(std::move(indent)) {}

  // Adds a row with as many cells as the header. Writes an empty cell as "<none>", and escapes
  // control characters.
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Returns the lines of the rows added since the last call, preceded by the header the first time.
  std::string Take();

 private:
  std::string Line(const std::vector<std::string>& cells) const;

  const std::vector<std::string> header_;
  const std::string indent_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
  bool begun_ = false;
};

}  // namespace tfjob::view
