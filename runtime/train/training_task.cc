// The roles of chief and worker.
#include "runtime/train/chief.h"
#include "runtime/train/task.h"
#include "runtime/train/trainer.h"

namespace tfjob::train {

Status RunTraining(TaskContext& context) {
  ASSIGN_OR_RETURN(auto server, context.Serve({}));
  Trainer trainer(context);
  RETURN_IF_ERROR(trainer.Prepare());
  if (cluster::RoleOf(context.tf_config()) == cluster::Role::kWorker) {
    RETURN_IF_ERROR(trainer.Train(nullptr));
    return trainer.Leave();
  }
  Chief chief(context, trainer);
  RETURN_IF_ERROR(chief.Prepare());
  RETURN_IF_ERROR(trainer.Train(&chief));
  return chief.EndJob();
}

}  // namespace tfjob::train
