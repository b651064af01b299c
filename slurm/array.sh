#!/usr/bin/env bash
# Trainings as one job array of Slurm, one system a task: the points of a sweep, for example. Once their text is made:
#   systems=$(ems check --experiment ems62 --trained | grep '^ems\.')
#   sbatch --array=1-$(wc -w <<<"$systems")%8 slurm/array.sh ems62 $systems
# The same command again trains what is left; --array=3,7 only these. What your site needs are flags of sbatch, which
# replace the lines below: --partition, --account, --gpus=N as `gpus` of config.yaml (0 on CPUs).
#SBATCH --gpus=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=8000
#SBATCH --time=2-00:00:00
#SBATCH --job-name=ems-array
# by this the next Snakemake with --profile slurm knows that a training of this folder still runs
#SBATCH --comment=rule_train
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=.snakemake/slurm-%A_%a.log
# two minutes before its time is over, and by hand: scancel --batch --signal=USR1 JOB_TASK
#SBATCH --signal=B:USR1@120
set -euo pipefail

experiment=$1
systems=("${@:2}")
system=${systems[SLURM_ARRAY_TASK_ID - 1]}

# Warned, the training saves and ends. Then its task is put into the queue again.
warned=
trap 'warned=1; trap "" USR1; kill -USR1 0' USR1
# --nolock: each Snakemake makes the files of its own system. --allowed-rules: and none that they share.
snakemake --nolock --cores "$SLURM_CPUS_PER_TASK" --allowed-rules train --config "experiment=$experiment" -- \
  "results/$experiment/models/$system/model.json" &
run=$!
status=0
wait $run || status=$?
if [ "$warned" ]; then # it was the warning that ended `wait`
  status=0
  wait $run || status=$?
  [ $status = 0 ] || scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit $status
