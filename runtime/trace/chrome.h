// Writes traces for Perfetto (ui.perfetto.dev) and chrome://tracing, which show the threads' spans
// on a common time axis.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/trace/trace.h"

namespace tfjob::trace {

// Returns the trace in the JSON object form of the "Trace Event Format", with one complete event
// ("ph": "X") per span, and times in microseconds. `process` is shown as the name of the process.
std::string ChromeTrace(const Trace& trace, std::string_view process);

}  // namespace tfjob::trace
