// Parses the text form of a timeline. A line is one step: words, with "quoted words" for spaces.
// More deeply indented lines below a step are its block, in YAML. '#' starts a comment. After every
// step that changes something the loop runs until it is idle.
//
//   apply BLOCK                    creates or replaces the TFJob; defaults: name "job", namespace
//                                  "ns", a minimal template
//   patch BLOCK                    merge-patches the TFJob
//   create pod|service NAME BLOCK  creates a foreign object; the block is merged into a minimal one
//   delete job | delete pod NAME | delete service NAME
//   pod NAME running | succeeded | failed exit=N [reason=R] | evicted | done | restarted N |
//            waiting REASON | gone
//                                  the kubelet's report. done: the tensorflow container exited with
//                                  0, a sidecar still runs; restarted N: its container restarted N
//                                  times; gone: a terminating pod has ended
//   pods running                   every pending pod runs
//   node NAME lost | ready
//   pod_group SCHEDULER PHASE      the phase that Volcano reports for the job's pod group
//   patch_pod_group SCHEDULER BLOCK  another client patches the pod group
//   native VERSION|none            the server's version of Kubernetes' own gangs; default:
//                                  scheduling.k8s.io/v1beta1
//   advance DURATION               moves the clock; the loop's timers fire meanwhile
//   restart operator               restarts it with empty memory
//   operator gang=NAME             restarts it with --gang-scheduler-name=NAME
//   fault VERB KIND NAME CODE [executed] [times=N]
//                                  the next such call fails; executed: the server does the work,
//                                  but the answer is lost
//   race VERB KIND NAME BLOCK      a user merge-patches the TFJob just before the next such call
//   mark                           `expect calls`, `expect no calls` and `expect event … since
//                                  mark` count from here
//
//   expect conditions TYPE[=False] …      all conditions, in order
//   expect condition TYPE REASON [TEXT]   the condition's reason, and a part of its message
//   expect pods [NAME=PHASE[*]] …         all pods of the job; * marks a terminating one
//   expect services [NAME] …
//   expect counts TYPE active=N succeeded=N failed=N restarts=N completed=LIST
//                                         only those that are named
//   expect attempt N
//   expect label NAME KEY=VALUE           a label of a pod
//   expect event REASON TEXT N            N events with that reason and that text in the message
//   expect calls CALL < CALL …            since the mark, in this order: "VERB KIND NAME"
//   expect no calls VERB …                since the mark; `writes`: all but get, list and watch
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
  std::shared_ptr<const Json> block;  // an empty object if there is none
};

StatusOr<std::vector<Step>> ParseTimeline(std::string_view text);

}  // namespace tfjob::timelines
