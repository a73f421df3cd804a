// Columns of text, aligned as kubectl aligns them.
#pragma once

#include <string>
#include <vector>

namespace tfjob::view {

// The columns keep their widths from one Take() to the next and only ever grow, so that rows which
// come later stand below those before.
class Table {
 public:
  explicit Table(std::vector<std::string> header, std::string indent = "")
      : header_(std::move(header)), indent_(std::move(indent)) {}

  // As many cells as the header has; an empty one is written "<none>".
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // The lines of the rows added since the last call, the first time with the header before them.
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
