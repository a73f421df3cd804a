// Says how gradients are clipped before an optimizer applies them. The arithmetic is Keras 3's
// (keras/src/optimizers/base_optimizer.py, keras/src/backend/common and ops). g is the gradient of
// one variable, |g| its Euclidean norm, c the limit:
//
//   value        min(max(g, -c), c), element by element
//   norm         c g / max(|g|, c)
//   global norm  g s, with s = c min(1 / n, 1 / c), where n is the norm of all gradients together;
//                s is NaN if n is not finite
//
// Only the graph of a training step clips (model/build.h).
#pragma once

namespace tfjob::optimizer {

enum class ClipKind { kNone, kValue, kNorm, kGlobalNorm };

struct Clipping {
  ClipKind kind = ClipKind::kNone;
  double limit = 0;  // finite and above 0, unless kind is kNone

  bool operator==(const Clipping&) const = default;
};

}  // namespace tfjob::optimizer
