#include "operator/view/table.h"

#include <algorithm>

#include "operator/view/printable.h"

namespace tfjob::view {
namespace {

constexpr size_t kGap = 3;

// Returns the number of characters shown on the screen: the number of bytes that start a UTF-8
// sequence.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) {
    cell = cell.empty() ? "<none>" : PrintableLine(cell);
  }
  rows_.push_back(std::move(cells));
}

std::string Table::Line(const std::vector<std::string>& cells) const {
  std::string line = indent_;
  for (size_t i = 0; i < cells.size(); ++i) {
    line += cells[i];
    if (i + 1 < cells.size()) line.append(widths_[i] + kGap - Width(cells[i]), ' ');
  }
  return line + "\n";
}

std::string Table::Take() {
  widths_.resize(header_.size());
  const auto widen = [this](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], Width(cells[i]));
  };
  widen(header_);
  for (const auto& row : rows_) widen(row);
  std::string text = begun_ ? "" : Line(header_);
  for (const auto& row : rows_) text += Line(row);
  rows_.clear();
  begun_ = true;
  return text;
}

}  // namespace tfjob::view
