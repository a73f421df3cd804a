#include "operator/control/observer.h"

namespace tfjob::control {

Observer& NoObserver() {
  static Observer none;
  return none;
}

}  // namespace tfjob::control
