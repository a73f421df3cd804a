#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/cpu/products.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

// The size of a tile, which suits the vector units. A product is divided into blocks of whole
// tiles. A block requires at least about kGrainMultiplications multiplications, which justifies
// waking a thread.
constexpr int64_t kTileRows = 16, kTileColumns = 48;
constexpr int64_t kGrainMultiplications = 1 << 20;

// Computes y = activation(y + bias) for a block. `bias` may be null.
template <typename T>
using Epilogue = void (*)(int64_t rows, int64_t cols, T* y, int64_t stride, const T* bias);

template <typename T, typename F>
void BiasAndActivation(int64_t rows, int64_t cols, T* y, int64_t stride, const T* bias) {
  const F f;
  for (int64_t row = 0; row < rows; ++row, y += stride) {
    if (bias != nullptr) {
      Map(cols, [&](T value, T add) { return f(value + add); }, y, y, bias);
    } else {
      Map(cols, f, y, y);
    }
  }
}

template <typename T>
class MatMul : public Kernel {
 public:
  MatMul(const ProductLayout& product, T alpha, T beta, bool bias, Epilogue<T> epilogue)
      : p_(product), alpha_(alpha), beta_(beta), bias_(bias), epilogue_(epilogue) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* a = static_cast<const T*>(inputs[0]);
    const auto* b = static_cast<const T*>(inputs[1]);
    const auto* bias = bias_ ? static_cast<const T*>(inputs[2]) : nullptr;
    auto* c = static_cast<T*>(outputs[0]);
    // Split c along its longer side. Every thread reads one whole operand: b if c is split by rows,
    // and a if c is split by columns. Splitting the longer side makes this operand the smaller one.
    const bool by_rows = p_.m >= p_.n;
    const int64_t length = by_rows ? p_.m : p_.n;
    const int64_t tile = by_rows ? kTileRows : kTileColumns;
    const int64_t tiles = (length + tile - 1) / tile;
    const int64_t tile_work = tile * p_.k * (by_rows ? p_.n : p_.m);
    const int64_t grain = 1 + kGrainMultiplications / std::max<int64_t>(1, tile_work);
    stream.ParallelFor(tiles, grain, [&](int64_t first, int64_t last) {
      const int64_t begin = first * tile, size = std::min(last * tile, length) - begin;
      if (by_rows) {
        Block(begin, size, 0, p_.n, a, b, bias, c);
      } else {
        Block(0, p_.m, begin, size, a, b, bias, c);
      }
    });
  }

 private:
  // Computes rows [i, i + m) and columns [j, j + n) of c.
  void Block(int64_t i, int64_t m, int64_t j, int64_t n, const T* a, const T* b, const T* bias,
             T* c) const {
    a += p_.transpose_a ? i : i * p_.a_stride;
    b += p_.transpose_b ? j * p_.b_stride : j;
    c += i * p_.c_stride + j;
    Gemm(m, n, p_.k, alpha_, {a, p_.a_stride, p_.transpose_a}, {b, p_.b_stride, p_.transpose_b},
         beta_, Matrix<T>{c, p_.c_stride});
    if (epilogue_ != nullptr) {
      epilogue_(m, n, c, p_.c_stride, bias == nullptr ? nullptr : bias + j);
    }
  }

  ProductLayout p_;
  T alpha_, beta_;
  bool bias_;
  Epilogue<T> epilogue_;
};

template <typename T>
StatusOr<Epilogue<T>> EpilogueOf(const std::string& activation, bool bias) {
  if (activation == "Relu") return BiasAndActivation<T, Relu>;
  if (activation == "Sigmoid") return BiasAndActivation<T, SigmoidOf>;
  if (activation == "Tanh") return BiasAndActivation<T, TanhOf>;
  if (!activation.empty()) return Unimplemented("no activation \"", activation, "\" in a product");
  return bias ? BiasAndActivation<T, Copy> : nullptr;
}

Prepared PrepareMatMul(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  ASSIGN_OR_RETURN(ProductLayout product, ProductLayoutOf(request));
  return ForFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) {
    return Make<MatMul<T>>(product, T{1}, T{0}, false, nullptr);
  });
}

Prepared PrepareFusedMatMul(const KernelRequest& request) {
  const bool bias = request.attributes.Get("bias", false);
  RETURN_IF_ERROR(ExpectOperands(request, bias ? 3 : 2, 1));
  ASSIGN_OR_RETURN(ProductLayout product, ProductLayoutOf(request));
  if (bias) {
    RETURN_IF_ERROR(ExpectShape(request.inputs[2], Shape({product.n})));
    if (request.inputs[2].dtype != request.outputs[0].dtype) {
      return InvalidArgument("the bias and the output differ in dtype");
    }
  }
  return ForFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) -> Prepared {
    ASSIGN_OR_RETURN(Epilogue<T> epilogue,
                     EpilogueOf<T>(request.attributes.Get<std::string>("activation", ""), bias));
    return Make<MatMul<T>>(product, T{1}, T{0}, bias, epilogue);
  });
}

Prepared PrepareMatMulAccumulate(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 3, 1));
  if (request.inputs[2] != request.outputs[0]) {
    return InvalidArgument("the output must be input 2 itself");
  }
  ASSIGN_OR_RETURN(ProductLayout product, ProductLayoutOf(request));
  const double alpha = NumberOf(request.attributes, "alpha", 1);
  return ForFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) {
    return Make<MatMul<T>>(product, static_cast<T>(alpha), T{1}, false, nullptr);
  });
}

}  // namespace

KernelTable::Entries MatMulKernels() {
  return {{"MatMul", {PrepareMatMul, {}}},
          {"FusedMatMul", {PrepareFusedMatMul, {}}},
          {"MatMulAccumulate", {PrepareMatMulAccumulate, {{0, 2, InPlace::kAlways}}}}};
}

}  // namespace tfjob::kernels::cpu
