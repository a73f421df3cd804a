// The text form of a timeline. One step a line: words, "quoted words" where there are spaces. Deeper indented lines
// below a step are its block, YAML. '#' starts a comment. After every step that changes something the loop runs until
// it is idle.
//
//   apply BLOCK                    create or replace the TFJob; what is not said: name "job", namespace "ns", a minimal template
//   patch BLOCK                    merge patch of the TFJob
//   create pod|service NAME BLOCK  an object of somebody else; the block is merged into a minimal one
//   delete job | delete pod NAME | delete service NAME
//   pod NAME running | succeeded | failed exit=N [reason=R] | evicted | done | restarted N | waiting REASON | gone
//                                  what a kubelet reports. done: its tensorflow container ended with 0, a sidecar runs on;
//                                  restarted N: its container restarted N times; gone: a terminating pod has ended
//   pods running                   every pending pod
//   node NAME lost | ready
//   pod_group SCHEDULER PHASE      what Volcano reports of the job's pod group
//   patch_pod_group SCHEDULER BLOCK  somebody else changes it
//   native VERSION|none            the server's version of Kubernetes' own gangs; scheduling.k8s.io/v1beta1 if nothing is said
//   advance DURATION               the clock moves; the loop's timers fire on the way
//   restart operator               what it had in memory is lost
//   operator gang=NAME             it is started again with --gang-scheduler-name=NAME
//   fault VERB KIND NAME CODE [executed] [times=N]
//                                  the next such call fails; executed: the server does the work, the answer is lost
//   race VERB KIND NAME BLOCK      just before the next such call a user merge-patches the TFJob
//   mark                           `expect calls`, `expect no calls` and `expect event … since mark` count from here
//
//   expect conditions TYPE[=False] …      all conditions in order
//   expect condition TYPE REASON [TEXT]   the condition's reason, and a part of its message
//   expect pods [NAME=PHASE[*]] …         all pods of the job; * marks a terminating one
//   expect services [NAME] …
//   expect counts TYPE active=N succeeded=N failed=N restarts=N completed=LIST     (those that are named)
//   expect attempt N
//   expect label NAME KEY=VALUE           of a pod
//   expect event REASON TEXT N            N events of that reason with that part in their message
//   expect calls CALL < CALL …            since the mark, in this order: "VERB KIND NAME"
//   expect no calls VERB …                since the mark; `writes` means all but get, list and watch
//   expect time startTime|completionTime TIME|none
//   expect status FIELD VALUE…            a member of the status as JSON
//   expect json pod|service NAME POINTER VALUE|none
//   expect pod_group SCHEDULER [POINTER] VALUE|none
//   expect tf_config NAME BLOCK
//   expect job gone
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::timelines {

struct Step {
  int line = 0;
  std::vector<std::string> words;
  std::shared_ptr<const Json> block;  // an empty object when there is none
};

StatusOr<std::vector<Step>> ParseTimeline(std::string_view text);

}  // namespace tfjob::timelines
