#include "runtime/model/layer/einsum.h"

#include <algorithm>
#include <map>
#include <vector>

#include "runtime/graph/ops.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

bool Has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

bool Repeats(const std::string& letters) {
  for (char letter : letters)
    if (std::ranges::count(letters, letter) > 1) return true;
  return false;
}

// Sums x over the axes whose letters occur neither in `other` nor in `result`. Removes these
// letters from `letters`.
Output SumAlone(Builder& b, Output x, std::string& letters, const std::string& other,
                const std::string& result) {
  std::vector<int64_t> axes;
  std::string kept;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (Has(other, letters[i]) || Has(result, letters[i])) {
      kept += letters[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  letters = kept;
  return axes.empty() ? x : Sum(b, x, axes);
}

// Transposes x, whose axes have the letters `from`, so that the axes are in the order `to`.
Output Ordered(Builder& b, Output x, const std::string& from, const std::string& to) {
  if (from == to) return x;
  std::vector<int64_t> permutation;
  for (char letter : to) permutation.push_back(static_cast<int64_t>(from.find(letter)));
  return Transpose(b, x, std::move(permutation));
}

class Product {
 public:
  Product(Builder& b, Output x, Output y, EinsumAxes axes) : b_(b), axes_(std::move(axes)) {
    x_ = SumAlone(b, x, axes_.x, axes_.y, axes_.z);
    y_ = SumAlone(b, y, axes_.y, axes_.x, axes_.z);
    Measure(x_, axes_.x);
    Measure(y_, axes_.y);
  }

  // Computes the product. Arranges both operands as batches of matrices: [batch…,rows…,sums…] and
  // [batch…,sums…,columns…].
  Output Run() const {
    std::string batch, rows, columns, sums;
    for (char letter : axes_.z) {
      const bool in_x = Has(axes_.x, letter), in_y = Has(axes_.y, letter);
      (in_x && in_y ? batch : in_x ? rows : columns) += letter;
    }
    for (char letter : axes_.y)
      if (!Has(axes_.z, letter)) sums += letter;
    const Output x = Ordered(b_, x_, axes_.x, batch + rows + sums);
    const Output y = Ordered(b_, y_, axes_.y, batch + sums + columns);
    const int64_t m = SizeOf(rows), k = SizeOf(sums), n = SizeOf(columns), count = SizeOf(batch);
    // Without a batch, `y` is a single matrix, so the row axes of `x` need not be merged.
    const Output product =
        batch.empty()
            ? MatMul(b_, Reshape(b_, x, Dims(rows, k)), Reshape(b_, y, {k, n}))
            : BatchMatMul(b_, Reshape(b_, x, {count, m, k}), Reshape(b_, y, {count, k, n}));
    const std::string order = batch + rows + columns;
    return Ordered(b_, Reshape(b_, product, Dims(order)), order, axes_.z);
  }

 private:
  void Measure(Output value, const std::string& letters) {
    for (size_t i = 0; i < letters.size(); ++i)
      sizes_[letters[i]] = b_.shape(value).dim(static_cast<int>(i));
  }
  int64_t SizeOf(const std::string& letters) const {
    int64_t size = 1;
    for (char letter : letters) size *= sizes_.at(letter);
    return size;
  }
  Shape Dims(const std::string& letters) const {
    std::vector<int64_t> dims;
    for (char letter : letters) dims.push_back(sizes_.at(letter));
    return Shape(std::move(dims));
  }
  // Returns the sizes of the letters (or a single 1 if there are no letters), followed by `last`.
  Shape Dims(const std::string& letters, int64_t last) const {
    std::vector<int64_t> dims = Dims(letters).dims();
    if (dims.empty()) dims.push_back(1);
    dims.push_back(last);
    return Shape(std::move(dims));
  }

  Builder& b_;
  EinsumAxes axes_;
  Output x_, y_;
  std::map<char, int64_t> sizes_;
};

}  // namespace

Status CheckEinsum(const EinsumAxes& axes) {
  for (const std::string* letters : {&axes.x, &axes.y, &axes.z})
    if (Repeats(*letters)) return InvalidArgument("expected no letter twice in ", *letters);
  for (char letter : axes.z) {
    if (!Has(axes.x, letter) && !Has(axes.y, letter))
      return InvalidArgument("no operand has the axis ", std::string(1, letter), " of the result");
  }
  return OkStatus();
}

Output Einsum(Builder& b, Output x, Output y, const EinsumAxes& axes) {
  return Product(b, x, y, axes).Run();
}

}  // namespace tfjob::model
