#include "operator/control/measurements/observer.h"

namespace tfjob::control {

Observer& NoObserver() {
  static Observer none;
  return none;
}

}  // namespace tfjob::control
