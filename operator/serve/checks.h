// Builds the responses of /healthz and /readyz from named checks, as Kubernetes' own components do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/serve/server.h"
#include "runtime/base/status.h"

namespace tfjob::serve {

struct Check {
  std::string name;
  std::function<Status()> run;  // runs on the server's thread; must be quick
};

// Returns a handler that runs the checks. If all checks pass, the handler responds 200 with "ok"
// or, if the query begins with "verbose", with one line per check. If a check fails, it responds
// 503 with one line per check: "[+]ping ok", "[-]caches failed: waiting for Pod".
Handler AllPass(std::vector<Check> checks);

}  // namespace tfjob::serve
