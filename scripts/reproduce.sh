#!/bin/sh
# Makes on this machine's GPU the records that README and docs speak of, draws them, and says what is faster or slower than in the
# committed ones. What was interrupted goes on by the same command.
#
#     scripts/reproduce.sh FOLDER [NAME ...]      # names of the table below, all but tune, stress and mutants where none is given
#
# Needs an NVIDIA GPU with its driver, nvcc for the rivals (scripts/install-cuda.sh brings it), and the program of
# `cargo build --release --features peers`. Seconds are about those of one H200, compilation by 16 cores included; those of the kill table
# (mutants) are reckoned from what its detectors took one by one. The exit code
# is 0 if all was measured and right, whatever is slower than before.
set -eu

usage="usage: scripts/reproduce.sh FOLDER [NAME ...], from the folder of the repository; names: all of those in this script"
[ $# -ge 1 ] && [ -f sweeps/between.toml ] || { echo "$usage" >&2; exit 2; }
folder=$1
shift
lookback=${LOOKBACK:-target/release/lookback}
[ -x "$lookback" ] || { echo "no $lookback: cargo build --release --features peers, or name the program in LOOKBACK" >&2; exit 2; }

# name, seconds, command
all="selftest 20 sweep selftest
size 160 sweep size
between 70 sweep sweeps/between.toml
types 30 sweep types
vt 70 sweep vt
seeds 10 sweep seeds
problems 490 sweep problems
columns 160 sweep sweeps/columns.toml
compaction 420 sweep sweeps/compaction.toml
histogram 20 sweep sweeps/histogram.toml
sorting 150 sweep sweeps/sorting.toml
moves 80 sweep sweeps/moves.toml
targets 380 compare --sweep targets
copies 60 sweep sweeps/copies.toml
tune 220 tune
stress 150 stress --device cuda --problem all --runs 1M --seconds 90
mutants 2400 stress --mutants --device cuda --seconds 4 --again 120"

names=${*:-$(printf '%s\n' "$all" | cut -d' ' -f1 | grep -v -x -e tune -e stress -e mutants | tr '\n' ' ')}
total=0
for name in $names; do
  line=$(printf '%s\n' "$all" | grep "^$name ") || { echo "there is no '$name'; $usage" >&2; exit 2; }
  total=$((total + $(printf '%s' "$line" | cut -d' ' -f2)))
done
echo "about $(((total + 59) / 60)) minutes for: $names" >&2
mkdir -p "$folder"
for name in $names; do
  command=$(printf '%s\n' "$all" | grep "^$name " | cut -d' ' -f3-)
  # A finished record is kept, and one that was interrupted is gone on with.
  if ls "$folder/$name"-*.jsonl.gz "$folder/$name.json" 2>/dev/null | grep -q .; then
    echo "== $name is there" >&2
    continue
  fi
  case $name in
    selftest | stress) into= ;;
    tune) into="--output $folder/my-table.toml" ;;
    mutants)
      into="--output $folder/mutants.part.json"
      [ ! -f "$folder/mutants.part.json" ] || into="$into --add $folder/mutants.part.json"
      ;;
    *) into="--output $folder" ;;
  esac
  if ls "$folder/$name"-*.jsonl >/dev/null 2>&1; then
    into="$into --resume"
  fi
  echo "== lookback $command $into" >&2
  code=0
  # shellcheck disable=SC2086 # words
  "$lookback" $command $into || code=$?
  # 4: right, and a target was missed. A timer that is not sure of itself does not keep the records from being made.
  case $name-$code in
    *-0 | *-4) ;;
    mutants-1) echo "== a fault survived, or a harmless variant was reported: the table says which" >&2 ;;
    selftest-1) echo "== the self-test failed: what it said above holds for all that follows" >&2 ;;
    *) exit $code ;;
  esac
  [ "$name" != mutants ] || mv "$folder/mutants.part.json" "$folder/mutants.json"
done
ls "$folder"/*.jsonl.gz >/dev/null 2>&1 || exit 0
"$lookback" report "$folder"
case $(ls "$folder") in
  *-h100.*) committed=reports/h100 ;;
  *) committed=reports ;;
esac
"$lookback" compare-records $committed "$folder"
